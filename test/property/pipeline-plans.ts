import fc from 'fast-check';
import { defineAgent, type Message, type Model, type Phase, type ToolEffect } from 'pawl';
import { toolOf } from '../fixtures/host.ts';

/** What a phase of a random pipeline does, whenever and wherever it is run. */
export interface PlannedPhase extends Pick<Phase, 'name' | 'optional' | 'fallback' | 'bare' | 'recovery'> {
  readonly maxSteps: number | undefined;
  readonly tools: readonly ToolName[] | undefined;
  /** The calls of each of its steps, until it comes to its end. */
  readonly steps: readonly (readonly PlannedCall[])[];
  readonly end: 'answer' | 'fail' | 'turn in circles';
}

export interface PlannedCall {
  readonly tool: ToolName | HelperName;
  /** Whether it says the same at each step. */
  readonly isSame: boolean;
}

export interface Plan {
  readonly phases: readonly PlannedPhase[];
  /** How many turns of the event loop's microtasks a model and a tool take. */
  readonly latency: readonly number[];
}

const effects = { look: 'read', dig: 'read', send: 'idempotent', pay: 'once', break: 'read' } as const satisfies Record<
  string,
  ToolEffect
>;
export type ToolName = keyof typeof effects;
/** Puts a helper to work, where the agent of a plan has such helpers. */
export type HelperName = 'agent__h0' | 'agent__h1';
const toolName = fc.constantFrom<ToolName>('look', 'dig', 'send', 'pay', 'send', 'pay', 'break');

export const plannedPhase: fc.Arbitrary<PlannedPhase> = fc.record({
  // So few that duplicates are common.
  name: fc.constantFrom('x', 'y', 'z'),
  optional: fc.boolean(),
  fallback: fc.constantFrom('', 'nothing {{.x}}'),
  bare: fc.nat(5).map((n) => n === 0),
  recovery: fc.constantFrom('step', 'boundary'),
  maxSteps: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined, freq: 4 }),
  tools: fc.option(fc.uniqueArray(toolName, { minLength: 1, maxLength: 4 }), { nil: undefined, freq: 5 }),
  steps: fc.array(
    fc.array(fc.record({ tool: toolName, isSame: fc.nat(3).map((n) => n === 0) }), { minLength: 1, maxLength: 3 }),
    { maxLength: 3 },
  ),
  end: fc.constantFrom('answer', 'answer', 'answer', 'answer', 'answer', 'fail', 'turn in circles'),
});

export const plans: fc.Arbitrary<Plan> = fc.record({
  phases: fc.array(plannedPhase, { minLength: 1, maxLength: 5 }),
  latency: fc.array(fc.nat(6), { minLength: 1, maxLength: 5 }),
});

/** What a process of a random pipeline is told of: everything it does to the world outside. */
export interface Watch {
  /** Never comes back in a process that is dead. */
  readonly alive: () => Promise<void> | undefined;
  readonly called: (call: { readonly callId: string; readonly phase: number; readonly effect: ToolEffect }) => void;
  readonly asked: (call: { readonly phase: number; readonly step: number }) => void;
}

const turns = async (count: number) => {
  for (let turn = 0; turn < count; turn++) await Promise.resolve();
};

/** The agent of a plan, its tools in the hands of one process. */
export function agentOf({ phases, latency }: Plan, watch: Watch) {
  const tools = Object.entries(effects).map(([name, effect]) =>
    toolOf(name, effect, async (input, { callId }) => {
      await watch.alive();
      watch.called({ callId, phase: Number(input.phase), effect });
      await turns(latency[callId.length % latency.length] ?? 0);
      await watch.alive();
      if (name === 'break') throw new Error(`broken in ${callId}`);
      return `${name} of ${callId}`;
    }),
  );
  return defineAgent({
    id: 'pipeline',
    instructions: '',
    tools,
    maxSteps: 6,
    phases: phases.map(({ steps: _, end: __, ...phase }, i): Phase => {
      const { maxSteps, tools: subset, ...rest } = phase;
      const output = (name: string) => (phases.slice(0, i).some((each) => each.name === name) ? `{{.${name}}}` : '');
      const instructions = `${i}: {{.Query}} x=${output('x')} y=${output('y')} z=${output('z')}`;
      const caps = { ...(maxSteps ? { maxSteps } : {}), ...(subset ? { tools: subset } : {}) };
      return { ...rest, ...caps, instructions };
    }),
  });
}

/** A model that answers by what it is sent, and by nothing else: so it says the same in each process. */
export function modelOf({ phases, latency }: Plan, watch: Watch): Model {
  const doStream = async ({ prompt }: { prompt: readonly Message[] }) => {
    await watch.alive();
    const system = String(prompt[0]?.content);
    const index = Number.parseInt(system, 10);
    const step = prompt.filter(({ role }) => role === 'assistant').length;
    watch.asked({ phase: index, step });
    await turns(latency[(index + step) % latency.length] ?? 0);
    await watch.alive();
    const { steps, end } = phases[index] as PlannedPhase;
    const circle = end === 'turn in circles' ? steps[0] : undefined;
    const calls = steps[step] ?? circle ?? [];
    if (calls.length === 0 && end === 'fail')
      throw Object.assign(new Error(`down in ${index}`), { isRetryable: false });
    const text = calls.length > 0 ? `thinking ${index}.${step}` : `said in ${index}.${step} to [${system}]`;
    return { stream: ReadableStream.from(partsOf(text, calls, { index, step })) };
  };
  const model = { specificationVersion: 'v4', provider: 'plan', modelId: 'plan', supportedUrls: {}, doStream };
  return model as unknown as Model;
}

function partsOf(text: string, calls: readonly PlannedCall[], { index, step }: { index: number; step: number }) {
  const usage = { inputTokens: { total: 10 + 3 * index + step }, outputTokens: { total: 1 + index } };
  return [
    { type: 'stream-start', warnings: [] },
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: text },
    { type: 'text-end', id: 't' },
    ...calls.map(({ tool, isSame }, i) => ({
      type: 'tool-call',
      toolCallId: `c${step}-${i}`,
      toolName: tool,
      input: JSON.stringify(inputOf({ tool, isSame }, { index, step, i })),
    })),
    { type: 'finish', finishReason: { unified: calls.length > 0 ? 'tool-calls' : 'stop', raw: 'x' }, usage },
  ];
}

function inputOf({ tool, isSame }: PlannedCall, { index, step, i }: { index: number; step: number; i: number }) {
  if (tool.startsWith('agent__')) return { prompt: isSame ? `${index}` : `${index}.${step}.${i}` };
  return isSame ? { phase: index } : { phase: index, step, i };
}
