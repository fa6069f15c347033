import { type Critic, type CriticHandle, createCritic, memoryStore, type SupervisedRun } from 'pawl';
import { callTool, fail, reply } from 'pawl/testing';
import type { Audit, AuditRecorder } from '../../src/audit/port.ts';
import { toolOf } from '../fixtures/host.ts';
import { notingAudit, notingBudget } from '../fixtures/noting-ports.ts';
import { unreadable } from './failures.ts';
import { type Port, type Scene, throwing } from './scene.ts';

const ok = { else: 'ok' } as const;
const durable = (ports: NonNullable<Scene['options']>['ports']): Scene => ({
  options: { store: memoryStore(), ports: ports ?? {} },
  script: [callTool('look'), reply('done')],
  tools: [toolOf('look')],
});

/** An object one of whose properties cannot even be looked at. */
const withGetter = <T extends object>(object: T, name: string, act: () => never): T =>
  Object.defineProperty({ ...object }, name, { enumerable: true, get: act });

const audit = (recorder: (whole: AuditRecorder) => AuditRecorder): Audit => {
  const inner = notingAudit();
  return { startRun: (info) => recorder(inner.startRun(info)) };
};

const recorderMethods = ['onStep', 'onTool', 'onPhase', 'logEvent', 'close'] as const;
const phases = [
  { name: 'a', instructions: 'A' },
  { name: 'b', instructions: 'B' },
];
const inPhases = (scene: Scene): Scene => ({
  ...scene,
  agent: { phases },
  script: [callTool('look'), reply('a'), reply('b')],
});

const auditPorts: readonly Port[] = [
  { name: 'audit.startRun', scene: (act) => durable({ audit: { startRun: act } }), ends: ok },
  ...recorderMethods.map(
    (method): Port => ({
      name: `audit recorder ${method}`,
      scene: (act) => ({
        ...inPhases(durable({ audit: audit((whole) => ({ ...whole, [method]: act })) })),
        after: (executor) => executor.shutdown(),
      }),
      ends: ok,
    }),
  ),
  ...recorderMethods.map(
    (method): Port => ({
      name: `audit recorder ${method}, a getter`,
      scene: (act) => inPhases(durable({ audit: audit((whole) => withGetter(whole, method, act)) })),
      failures: throwing,
      ends: ok,
    }),
  ),
];

const budgetWith = (part: object): Scene => durable({ budget: { ...notingBudget(), ...part } });
/** What throws without a code of its own is a refusal as well. */
const refusal = {
  hangs: 'PORT_TIMEOUT',
  'gives what has a throwing toJSON': 'ok',
  else: 'BUDGET_EXCEEDED',
} as const;
const down = fail(Object.assign(new Error('down'), { isRetryable: false }));

const budgetPorts: readonly Port[] = [
  { name: 'budget.check', scene: (act) => budgetWith({ check: act }), ends: refusal },
  { name: 'budget.reserve', scene: (act) => budgetWith({ reserve: act }), ends: refusal },
  { name: 'budget.commit', scene: (act) => budgetWith({ commit: act }), ends: ok },
  {
    name: 'budget.refund',
    scene: (act) => ({ ...budgetWith({ refund: act }), script: [down] }),
    ends: { else: 'MODEL' },
  },
  {
    name: 'budget.restore',
    scene: (act) => ({
      ...budgetWith({ restore: act }),
      runOptions: { resume: { history: [], spend: { tokens: 1, usd: 0, seconds: 0 } } },
    }),
    isStartOnly: true,
    ends: ok,
  },
  {
    name: 'what budget.commit gives',
    scene: (act) => budgetWith({ commit: async () => withGetter({ usd: 0, seconds: 0 }, 'tokens', act) }),
    failures: throwing,
    ends: ok,
  },
  ...(['check', 'reserve', 'commit', 'restore'] as const).map(
    (method): Port => ({
      name: `budget.${method}, a getter`,
      scene: (act) => ({
        ...durable({ budget: withGetter(notingBudget(), method, act) }),
        runOptions: { resume: { history: [], spend: { tokens: 1, usd: 0, seconds: 0 } } },
      }),
      failures: throwing,
      isStartOnly: true,
      ends: method === 'check' || method === 'reserve' ? { else: 'BUDGET_EXCEEDED' } : ok,
    }),
  ),
];

const handle: CriticHandle = { onActivity: () => {}, onOutOfSteps: async () => {}, state: () => ({}), stop: () => {} };
const criticOf = (of: (run: SupervisedRun) => CriticHandle): Scene => {
  const critic: Critic = { monitor: (_, run) => of(run) };
  return durable({ critic });
};
const outOfSteps = (scene: Scene): Scene => ({ ...scene, agent: { maxSteps: 1 } });
const exhausted = { else: 'STEP_LIMIT' } as const;

/** The ready critic, whose host is asked at the step limit, and when a run is idle beyond its soft limit. */
const escalated = (act: () => never): Scene => ({
  ...durable({ critic: createCritic({ escalator: act, idleMs: 2, askTimeoutMs: 15, backstopMs: 5_000 }) }),
  script: [callTool('look'), () => new Promise((resolve) => setTimeout(() => resolve(reply('done')), 40))],
});

const criticPorts: readonly Port[] = [
  { name: 'critic.monitor', scene: (act) => durable({ critic: { monitor: act } }), ends: ok },
  { name: 'critic onActivity', scene: (act) => criticOf(() => ({ ...handle, onActivity: act })), ends: ok },
  { name: 'critic state', scene: (act) => criticOf(() => ({ ...handle, state: act })), ends: ok },
  { name: 'critic stop', scene: (act) => criticOf(() => ({ ...handle, stop: act })), ends: ok },
  {
    name: 'critic onOutOfSteps',
    scene: (act) => outOfSteps(criticOf(() => ({ ...handle, onOutOfSteps: act }))),
    ends: exhausted,
  },
  ...(['onActivity', 'onOutOfSteps', 'state', 'stop'] as const).map(
    (method): Port => ({
      name: `critic ${method}, a getter`,
      scene: (act) => outOfSteps(criticOf(() => withGetter(handle, method, act))),
      failures: throwing,
      ends: exhausted,
    }),
  ),
  {
    name: 'what a critic says',
    scene: () =>
      criticOf((run) => {
        run.nudge(unreadable() as never);
        run.raiseSteps(unreadable() as never);
        return handle;
      }),
    failures: ['gives what cannot be read'],
    ends: ok,
  },
  {
    name: 'why a critic kills',
    scene: () => criticOf((run) => ({ ...handle, onActivity: () => run.kill(unreadable() as never) })),
    failures: ['gives what cannot be read'],
    ends: { else: 'CRITIC_KILL' },
  },
  {
    name: 'escalator, at the step limit',
    scene: (act) => outOfSteps(escalated(act)),
    ends: exhausted,
  },
  { name: 'escalator, of an idle run', scene: (act) => ({ ...escalated(act), agent: { maxRuntimeMs: 1 } }), ends: ok },
];

export const supervisionPorts = [...auditPorts, ...budgetPorts, ...criticPorts];
