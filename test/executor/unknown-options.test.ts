import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createAudit,
  createBudget,
  createCompactor,
  createCritic,
  createEscalator,
  createExecutor,
  createPalette,
  defineAgent,
  defineSkill,
  defineTool,
  diagnose,
  type ExecutorOptions,
  encrypt,
  jsonLogger,
  memoryStore,
  type RunOptions,
} from 'pawl';
import { fanOut } from 'pawl/fan-out';
import { createCheckpointer, createCheckpointerFactory } from 'pawl/stores/kit';
import { postgresStore } from 'pawl/stores/postgres';
import { sqliteBudget, sqliteStore } from 'pawl/stores/sqlite';
import { reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { createActor, waitFor } from 'xstate';
import { configOf } from '../../src/executor/host/config.ts';
import { hostOf } from '../fixtures/host.ts';

const models = { fast: scriptedModel([reply('done')]) };
const path = join(mkdtempSync(join(tmpdir(), 'pawl-options-')), 'file.db');
const key = Buffer.from(Array.from({ length: 32 }, (_, i) => (i * 37 + 11) % 256));
const noTool = { name: 'look', description: 'Looks.', input: { type: 'object' }, execute: () => 'ok' };
const phase = { name: 'only', instructions: 'Work.' };
const secret = 'postgres://user:hunter2@db/runs';

/** The message of the TypeError that a wrong call throws. */
function refusal(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError);
    return (error as TypeError).message;
  }
  throw new Error('the call was taken');
}

/** An executor with options that do not compile. */
const executorWith = (options: object) => () => createExecutor({ models, ...options } as ExecutorOptions);

describe('a word of another library is refused with the word of Pawl', () => {
  const agentWith = (fields: object) => () => defineAgent({ id: 'a', instructions: 'Work.', ...fields } as never);
  const toolWith = (fields: object) => () => defineTool({ ...noTool, input: undefined, ...fields } as never);
  test.for<[string, () => unknown, string]>([
    ['system', agentWith({ system: 'Work.' }), 'Pawl calls the system prompt instructions'],
    ['prompt', agentWith({ prompt: secret }), 'each run has a prompt of its own: executor.run(agent, { prompt })'],
    [
      'messages',
      agentWith({ messages: [] }),
      'a run gets earlier messages as history: executor.run(agent, { prompt, history })',
    ],
    ['modelTier', agentWith({ modelTier: 'fast' }), 'model takes the name of a tier, or a language model'],
    ['stopWhen', agentWith({ stopWhen: [] }), 'maxSteps is the most steps of a run'],
    ['maxIterations', agentWith({ maxIterations: 5 }), 'maxSteps is the most steps of a run'],
    ['maxTurns', agentWith({ maxTurns: 5 }), 'maxSteps is the most steps of a run'],
    [
      'maxRetries',
      agentWith({ maxRetries: 5 }),
      'createExecutor({ defaults: { modelAttempts } }) is the most attempts of a model call',
    ],
    ['handoffs', agentWith({ handoffs: [] }), 'subAgents takes the ids of agents that it may call'],
  ])('agent a: %s', ([word, call, advice]) => {
    expect(refusal(call)).toBe(`agent a: unknown option ${word}; ${advice}`);
  });
  test('journal.lingerMs, a name of before, is refused with retention.events', () => {
    expect(refusal(executorWith({ journal: { lingerMs: 1 } }))).toBe(
      'createExecutor: unknown option journal.lingerMs; retention.events takes this time',
    );
  });
  test('maxIterations, a name of before, is refused with maxSteps by phases, skills, defaults and a fan-out', async () => {
    const phases = [{ name: 'a', instructions: 'A', maxIterations: 3 }];
    const skill = { name: 's', description: '', instructions: '', input: {}, maxIterations: 3 };
    const advice = 'maxSteps is the most steps of a run';
    expect(refusal(agentWith({ phases }))).toContain(`unknown option phases[0].maxIterations; ${advice}`);
    expect(refusal(() => defineSkill(skill as never))).toContain(`unknown option maxIterations; ${advice}`);
    expect(refusal(executorWith({ defaults: { maxIterations: 3 } }))).toContain(`defaults.maxIterations; ${advice}`);
    await expect(async () => fanOut({ maxIterations: 3 } as never)).rejects.toThrow(`maxIterations; ${advice}`);
  });
  test.for([
    ['checkpoints', 'store takes the store'],
    ['history', 'retention.records takes the time of records'],
    ['keepOutcomesMs', 'retention.outcomes takes this time'],
    ['keepSignalsMs', 'retention.signals takes this time'],
    ['version', 'deployment is the number of this deployment; version is of an agent'],
    ['db', "store takes the store: sqliteStore({ path: 'runs.db' })"],
    ['maxRetries', 'defaults.modelAttempts is the most attempts of a model call'],
    [
      'concurrency',
      'executor.work({ concurrency }) bounds the runs of a worker, defaults.toolConcurrency the calls of a message',
    ],
    ['onFinish', 'onOutcome gets the end of each run'],
    ['telemetry', 'tracing takes openTelemetry() of pawl/otel'],
  ])(
    'createExecutor: %s, a name of before or of another library, is refused with the name of today',
    ([word, advice]) => {
      expect(refusal(executorWith({ [`${word}`]: memoryStore() }))).toBe(
        `createExecutor: unknown option ${word}; ${advice}`,
      );
    },
  );
  test.for([
    ...['parameters', 'inputSchema', 'schema'].map((word) => [word, 'the schema of its input is input'] as const),
    ...['run', 'handler'].map((word) => [word, 'the function that does the work is execute'] as const),
    ['requiresApproval', 'needsApproval makes a person decide'] as const,
  ])('tool "look": %s', ([word, advice]) => {
    expect(refusal(toolWith({ [word]: {} }))).toBe(`tool "look": unknown option ${word}; ${advice}`);
  });
});

test('sqliteStore with a path alone is refused with what to write', () => {
  expect(refusal(() => sqliteStore('runs.db' as never))).toBe(
    "sqliteStore takes options, not a string: write sqliteStore({ path: 'runs.db' })",
  );
});

describe('two entries of one name are refused: of two, one would never be found', () => {
  test('two agents of one id, and two tools of one name', () => {
    const agent = (instructions: string) => defineAgent({ id: 'a', instructions });
    const agents = [agent('Work.'), agent('Rest.')];
    expect(refusal(executorWith({ agents }))).toBe(
      'createExecutor: agents has two with the id "a"; each needs its own',
    );
    const tools = [defineTool(noTool), defineTool(noTool)];
    expect(refusal(executorWith({ tools }))).toBe(
      'createExecutor: tools has two with the name "look"; each needs its own',
    );
  });

  test('and a value that is no skill is refused', () => {
    expect(refusal(executorWith({ skills: [null] }))).toBe(
      'createExecutor: skills[0] is not a skill made with defineSkill',
    );
    expect(refusal(executorWith({ skills: {} }))).toBe(
      'createExecutor: skills must be a list of skills, not an object',
    );
  });

  test('one agent that is listed twice is one agent', () => {
    const agent = defineAgent({ id: 'a', instructions: 'Work.' });
    expect(executorWith({ agents: [agent, agent] })).not.toThrow();
  });
});

describe('an option that nothing reads is refused with the nearest known one', () => {
  test.for<[string, () => unknown, string]>([
    [
      'createExecutor',
      executorWith({ requireDurabel: true }),
      'createExecutor: unknown option requireDurabel; did you mean requireDurable?',
    ],
    [
      'createExecutor, another place',
      executorWith({ toolTimeoutMs: 5 }),
      'createExecutor: unknown option toolTimeoutMs; did you mean defaults.toolTimeoutMs?',
    ],
    [
      'createExecutor, a port at the top',
      executorWith({ budget: {} }),
      'createExecutor: unknown option budget; did you mean ports.budget?',
    ],
    [
      'defaults',
      executorWith({ defaults: { toolTimeout: 5 } }),
      'createExecutor: unknown option defaults.toolTimeout; did you mean defaults.toolTimeoutMs?',
    ],
    [
      'ports',
      executorWith({ ports: { auditt: {} } }),
      'createExecutor: unknown option ports.auditt; did you mean ports.audit?',
    ],
    [
      'onSaveError',
      executorWith({ onSaveError: { than: 'fail' } }),
      'createExecutor: unknown option onSaveError.than; did you mean onSaveError.then?',
    ],
    [
      'defineAgent',
      () => defineAgent({ id: 'a', instructions: '', maxStep: 3 } as never),
      'agent a: unknown option maxStep; did you mean maxSteps?',
    ],
    [
      'a phase',
      () => defineAgent({ id: 'a', instructions: '', phases: [{ ...phase, fallbak: '' } as never] }),
      'agent a: unknown option phases[0].fallbak; did you mean phases[0].fallback?',
    ],
    [
      'an agent, a setting at the top',
      () => defineAgent({ id: 'a', instructions: '', temperature: 0 } as never),
      'agent a: unknown option temperature; did you mean settings.temperature?',
    ],
    [
      'a phase, a setting at the top',
      () => defineAgent({ id: 'a', phases: [{ ...phase, temperature: 0 } as never] }),
      'agent a: unknown option phases[0].temperature; did you mean phases[0].settings.temperature?',
    ],
    [
      'a skill, a setting at the top',
      () => defineSkill({ name: 'look', description: '', input: {}, instructions: '', toolChoise: 'none' } as never),
      'skill "look": unknown option toolChoise; did you mean settings.toolChoice?',
    ],
    [
      'defineTool',
      () => defineTool({ ...noTool, timeout: 5 } as never),
      'tool "look": unknown option timeout; did you mean timeoutMs?',
    ],
    [
      'defineSkill',
      () => defineSkill({ ...noTool, execute: undefined, instructions: '' } as never),
      'skill "look": unknown option execute; known: ',
    ],
    [
      'sqliteStore',
      () => sqliteStore({ path, durabilty: 'process' } as never),
      'sqliteStore: unknown option durabilty; did you mean durability?',
    ],
    [
      'postgresStore',
      () => postgresStore({ pool: { connect() {} }, shema: 'x' } as never),
      'postgresStore: unknown option shema; did you mean schema?',
    ],
    ['memoryStore', () => memoryStore({ clok: 1 } as never), 'memoryStore: unknown option clok; did you mean clock?'],
    [
      'sqliteBudget',
      () => sqliteBudget({ path, busyTimeout: 1 } as never),
      'sqliteBudget: unknown option busyTimeout; did you mean busyTimeoutMs?',
    ],
    [
      'createBudget',
      () => createBudget({ token: 5 } as never),
      'createBudget: unknown option token; did you mean tokens?',
    ],
    [
      'createAudit',
      () => createAudit({ stoer: memoryStore() } as never),
      'createAudit: unknown option stoer; did you mean store?',
    ],
    [
      'createCritic',
      () => createCritic({ escalator: () => null, idle: 5 } as never),
      'createCritic: unknown option idle; did you mean idleMs?',
    ],
    [
      'createEscalator',
      () => createEscalator({ killAfter: 5 } as never),
      'createEscalator: unknown option killAfter; did you mean killAfterAlarms?',
    ],
    [
      'noProgress',
      () => createEscalator({ noProgress: { step: 3 } } as never),
      'createEscalator: unknown option noProgress.step; did you mean noProgress.steps?',
    ],
    [
      'createCompactor',
      () => createCompactor({ keepfirst: 1 } as never),
      'createCompactor: unknown option keepfirst; did you mean keepFirst?',
    ],
    [
      'createPalette',
      () => createPalette({ agent: [] } as never),
      'createPalette: unknown option agent; did you mean agents?',
    ],
    [
      'encrypt',
      () => encrypt({ keys: { a: key }, current: 'a', plane: 'read' } as never),
      'encrypt: unknown option plane; did you mean plain?',
    ],
    [
      'jsonLogger',
      () => jsonLogger({ wirte: () => {} } as never),
      'jsonLogger: unknown option wirte; did you mean write?',
    ],
    [
      'createCheckpointerFactory',
      () => createCheckpointerFactory(memoryStore(), { throttle: 5 } as never),
      'createCheckpointerFactory: unknown option throttle; did you mean throttleMs?',
    ],
    [
      'createCheckpointer',
      () => createCheckpointer(memoryStore(), {} as never, { throttle: 5 } as never),
      'createCheckpointer: unknown option throttle; did you mean throttleMs?',
    ],
  ])('%s refuses an option that it does not know', ([, call, message]) => {
    expect(refusal(call)).toContain(message);
  });

  test.for<[string, () => Promise<unknown>, string]>([
    [
      'an invocation',
      () => hostOf().run({ callerID: 'x' } as never),
      'invocation: unknown option callerID; did you mean callerId?',
    ],
    [
      'an image',
      () => hostOf().run({ images: [{ mediaType: 'image/png', data: 'AAAA', mimeType: 'x' } as never] }),
      'images[0]: unknown option mimeType; known: mediaType, data',
    ],
    [
      'run options',
      () => hostOf().run({}, { abortSignal: undefined } as never),
      'run options: unknown option abortSignal; did you mean signal?',
    ],
    [
      'recover',
      () => hostOf().executor.recover({ maxAttempt: 1 } as never),
      'recover: unknown option maxAttempt; did you mean maxAttempts?',
    ],
    [
      'shutdown',
      () => hostOf().executor.shutdown({ drain: 1 } as never),
      'shutdown: unknown option drain; did you mean drainMs?',
    ],
    [
      'shutdownOnSignals',
      async () => hostOf().executor.shutdownOnSignals({ signal: ['SIGTERM'] } as never),
      'shutdownOnSignals: unknown option signal; did you mean signals?',
    ],
    [
      'diagnose',
      async () => {
        for await (const _ of diagnose(memoryStore(), { agent: [] } as never));
      },
      'diagnose: unknown option agent; did you mean agents?',
    ],
    [
      'fanOut',
      () => fanOut({ prompt: 'Go.', models, deadline: 5 } as never),
      'fanOut: unknown option deadline; did you mean deadlineMs?',
    ],
    [
      'steer',
      async () => (await hostOf().start()).steer('x', { child: true } as never),
      'steer: unknown option child; did you mean children?',
    ],
  ])('%s rejects an option that it does not know', async ([, call, message]) => {
    const error = await call().then(
      () => 'taken',
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(TypeError);
    expect((error as TypeError).message).toContain(message);
  });

  test('an invocation with an unknown option becomes the error of a hosted run and throws nothing at its host', async () => {
    const { executor, agent, model } = hostOf();
    const actor = createActor(executor.logic(agent), { input: { prompt: 'Go.', callerID: 'x' } as never }).start();
    const { output } = await waitFor(actor, ({ status }) => status === 'done');
    expect(output).toMatchObject({
      status: 'error',
      error: { message: expect.stringContaining('did you mean callerId?') },
    });
    expect(model.calls).toHaveLength(0);
  });

  test('an own key __proto__ and the names of Object.prototype are unknown options', () => {
    const polluted = JSON.parse('{ "defaults": { "__proto__": { "maxSteps": 1 } } }');
    expect(refusal(executorWith(polluted))).toContain('unknown option defaults.__proto__');
    expect(refusal(executorWith({ constructor: 1 }))).toContain('unknown option constructor');
    expect(refusal(() => defineTool({ ...noTool, toString: () => 'x' } as never))).toContain('unknown option toString');
  });

  test('keys that are symbols are ignored', () => {
    expect(createExecutor({ models, [Symbol('mine')]: 1 } as ExecutorOptions)).toHaveProperty('run');
  });

  test('a key of any length and any characters makes one short line of plain ASCII', () => {
    const message = refusal(executorWith({ [`a\n\u202e${'x'.repeat(1_000_000)}`]: 1 }));
    expect(message.length).toBeLessThan(1_000);
    expect(message).toMatch(/^[ -~…]*$/);
  });

  test('options that are no object are refused without their text, which may be a password', () => {
    expect(refusal(() => encrypt(secret as never))).toBe('encrypt: the options must be an object, not a string');
    expect(refusal(() => createCompactor(null as never))).toBe(
      'createCompactor: the options must be an object, not null',
    );
    expect(refusal(executorWith({ ports: [] }))).toBe('createExecutor: ports must be an object, not an array');
  });

  test('an agent or a tool that was defined may be spread into a new definition', () => {
    const agent = defineAgent({ id: 'a', instructions: 'x', output: { type: 'string' } });
    expect(defineAgent({ ...agent, id: 'b' })).toMatchObject({ id: 'b', name: 'a', instructions: 'x' });
  });
});

describe('a port that cannot do its work is refused when the executor is made', () => {
  const stores: [string, unknown][] = [
    ['a path', 'runs.db'],
    ['a URL', secret],
    ['null', null],
    ['false', false],
    ['an empty object', {}],
    ['a promise of a store', Promise.resolve(memoryStore())],
    ['a factory function', () => memoryStore()],
  ];

  test.for(stores)('%s as the store never makes an executor whose runs are not durable', ([, store]) => {
    const message = refusal(executorWith({ store }));
    expect(message).toMatch(/^createExecutor: store must be a store, not /);
    expect(message).toContain("sqliteStore({ path: 'runs.db' })");
    expect(message).not.toContain('hunter2');
  });

  test('a store that lacks methods is refused with their names', () => {
    const { load: _, listInterrupted: __, ...half } = memoryStore();
    expect(refusal(executorWith({ store: half }))).toContain('it has no load, listInterrupted');
  });

  test('a store by its prototype is a store', async () => {
    class Store {
      readonly #kept = memoryStore();
      save = this.#kept.save;
      load = this.#kept.load;
      delete = this.#kept.delete;
      listInterrupted(...page: Parameters<ReturnType<typeof memoryStore>['listInterrupted']>) {
        return this.#kept.listInterrupted(...page);
      }
    }
    expect(await hostOf({ store: new Store() }).run()).toMatchObject({ status: 'ok', durable: true });
  });

  test('a checkpointer is not made for a path', () => {
    expect(refusal(() => createCheckpointerFactory('runs.db' as never))).toContain('must be a store, not a string');
    expect(refusal(() => createCheckpointer('runs.db' as never, {} as never))).toContain(
      'must be a store, not a string',
    );
  });

  test.for<[string, object, string]>([
    [
      'a store as ports.checkpointer',
      { checkpointer: memoryStore() },
      'ports.checkpointer must have the function begin: use createCheckpointerFactory(store)',
    ],
    [
      'a budget',
      { budget: { check() {} } },
      'ports.budget must have the functions check, reserve, commit, refund; it has no reserve, commit, refund',
    ],
    ['a path as audit', { audit: 'audit.db' }, 'ports.audit must have the function startRun'],
    ['a critic', { critic: () => null }, 'ports.critic must have the function monitor'],
    ['a list as palette', { palette: [] }, 'ports.palette must have the function resolve'],
  ])('%s is refused', ([, ports, message]) => {
    expect(refusal(executorWith({ ports }))).toContain(message);
  });

  test.for<[string, object, string]>([
    ['a logger', { logger: { warning() {} } }, 'logger must have the function warn'],
    [
      'a clock',
      { clock: Date },
      'clock must have the functions now, monotonic, setTimeout, clearTimeout; it has no monotonic',
    ],
    ['ids', { ids: 'uuid' }, 'ids must be a function'],
    ['onOutcome', { onOutcome: 'https://example.com/hook' }, 'onOutcome must be a function, not a string'],
    ['compactor', { compactor: {} }, 'compactor must be a function'],
    ['redact', { redact: /secret/ }, 'redact must be a function'],
    [
      'a word',
      { onDefinitionChange: 'restrat' },
      "onDefinitionChange must be 'refuse' or 'restart' or 'continue-matching', not \"restrat\"; did you mean 'restart'?",
    ],
    [
      'a word of onSaveError',
      // biome-ignore lint/suspicious/noThenProperty: the name of a policy's field
      { onSaveError: { then: 'stop' } },
      "onSaveError.then must be 'wait' or 'fail', not \"stop\"",
    ],
    ['requireDurable', { requireDurable: 'no' }, 'requireDurable must be true or false, not a string'],
    ['a list of tools', { tools: { look: noTool } }, 'tools must be a list'],
    ['a tool', { tools: [noTool] }, 'tools[0] is not a tool made with defineTool'],
    ['an agent', { agents: [{ id: 'a' }] }, 'agents[0] is not an agent made with defineAgent'],
    ['a default', { defaults: { maxSteps: '5' } }, 'defaults.maxSteps must be a number above 0, not "5"'],
    ['half a step', { defaults: { maxSteps: 1.5 } }, 'defaults.maxSteps must be a whole number, not 1.5'],
    ['a time for retries', { defaults: { modelRetryMs: 0 } }, 'defaults.modelRetryMs must be a number above 0'],
    [
      'a wait',
      { defaults: { modelOutageMs: -1 } },
      'defaults.modelOutageMs must be a number of 0 or more, not the number -1',
    ],
    ['an end of a budget', { onBudgetExceeded: 'wait' }, "onBudgetExceeded must be 'park' or 'fail', not \"wait\""],
    ['an end of a wait', { onModelOutage: 'wait' }, "onModelOutage must be 'park' or 'fail', not \"wait\""],
  ])('%s that cannot be used is refused', ([, options, message]) => {
    expect(refusal(executorWith(options))).toContain(message);
  });

  test('a wait of 0 for the model is allowed: no run waits for it (waiting 30)', () => {
    expect(executorWith({ defaults: { modelOutageMs: 0 }, onModelOutage: 'fail' })).not.toThrow();
  });

  test('a codec without seal and open is refused by each store', () => {
    for (const make of [
      () => sqliteStore({ path, codec: 'key' as never }),
      () => sqliteStore({ path, codec: {} as never }),
    ]) {
      expect(refusal(make)).toContain('codec must have the functions seal and open');
    }
  });

  test('run options that cannot be used are refused', async () => {
    const wrong = { checkpointer: 'runs.db' } as unknown as RunOptions;
    await expect(hostOf().run({}, wrong)).rejects.toThrow(
      'run options: checkpointer must have the functions save, complete, fail',
    );
    await expect(hostOf().run({}, { signal: new AbortController() as never })).rejects.toThrow(
      'signal must be an AbortSignal',
    );
  });
});

test('a model in the place of the record of models is refused, and the message shows the record', () => {
  expect(refusal(() => createExecutor({ models: models.fast as never }))).toBe(
    'createExecutor: models must be { tier: model, … }, not a model; write { fast: model }',
  );
});

describe('an option that is undefined is absent', () => {
  test('each of the defaults keeps its value: none stops being a limit', () => {
    const { defaults } = configOf({ models });
    const absent = Object.fromEntries(Object.keys(defaults).map((name) => [name, undefined]));
    expect(configOf({ models, defaults: absent as never }).defaults).toEqual(defaults);
  });

  test('so do the fields of onSaveError', () => {
    // biome-ignore lint/suspicious/noThenProperty: the name of a policy's field
    const onSaveError = { maxUnsavedSteps: undefined, then: undefined } as never;
    expect(configOf({ models, onSaveError }).onSaveError).toEqual(configOf({ models }).onSaveError);
  });
});

test.for([
  ['tools', null, 'agent a: tools must be a list, or a record of AI SDK tools'],
  ['tools', false, 'agent a: tools must be a list, or a record of AI SDK tools'],
  ['settings', 0, 'agent a: settings must be an object, not the number 0'],
] as const)('an agent with %s: %s is refused with what belongs there', ([field, value, message]) => {
  expect(refusal(() => defineAgent({ id: 'a', instructions: '', [field]: value } as never))).toBe(message);
});
