import type { memoryStore, Phase } from 'pawl';
import { callTool, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf } from '../fixtures/host.ts';
import { diedWhen, look, systemsOf } from '../fixtures/phases.ts';

const phasesOf = (...instructions: string[]): Phase[] =>
  instructions.map((each, i) => ({ name: 'abcdef'[i] ?? 'x', instructions: each }));
const run = async (phases: readonly Phase[], replies: readonly string[], prompt = 'Go.') => {
  const host = hostOf({ agent: { phases }, script: replies.map((text) => reply(text)) });
  const result = await host.run({ prompt });
  return { ...host, result, systems: systemsOf(host.model) };
};

describe('the instructions of a phase', () => {
  test('are filled in with the prompt and with what came before, and with nothing else (pipeline 2)', async () => {
    const { systems, warnings } = await run(
      phasesOf('About {{.Query}}', '{{.a}}, {{ .Query }}', '{{.b}} after {{.a}}'),
      ['one', 'two', 'three'],
      'the sea',
    );
    expect(systems).toEqual(['About the sea', 'one, the sea', 'two after one']);
    expect(warnings).toEqual([]);
  });

  test.for(['{{.constructor}}', '{{.a.length}}', '{{#if user}}', '{{ user.name }}', '{{', '{{.Query', 'f({{ a: 1 }})'])(
    'keep %s, which names nothing that is known, as it stands there (edges 23)',
    async (text) => {
      const phases = [look, { name: 'b', instructions: `<${text}> {{.Query}}` }];
      const host = hostOf({ agent: { phases }, script: [reply('x'), reply('y')] });
      await host.run();
      expect(systemsOf(host.model).at(-1)).toBe(`<${text}> Go.`);
      expect(host.warned).toEqual([]);
    },
  );

  test('say {{ by {{{{: so a phase can be asked about templates (edges 23)', async () => {
    const { systems } = await run(phasesOf('Write {{{{.Query}} for {{.Query}}'), ['x']);
    expect(systems).toEqual(['Write {{.Query}} for Go.']);
  });

  test('are empty where they name a later phase, in an agent of another copy of the package (pipeline 2)', async () => {
    const phases = [
      { name: 'a', instructions: '<{{.b}}>' },
      { name: 'b', instructions: 'b' },
    ];
    const host = hostOf({ agent: { phases }, isForeign: true, script: [reply('x'), reply('y')] });
    await host.run();
    expect(systemsOf(host.model)[0]).toBe('<>');
  });

  test('do not expand braces in an output or in the prompt (pipeline 2)', async () => {
    const { systems, warnings } = await run(
      phasesOf('{{.Query}}', '{{.a}}', '{{.b}} {{.Query}}'),
      ['{{.Query}} {{', '{{.a}}{{.b}}', 'z'],
      'tell {{.a}}',
    );
    expect(systems).toEqual(['tell {{.a}}', '{{.Query}} {{', '{{.a}}{{.b}} tell {{.a}}']);
    expect(warnings).toEqual([]);
  });

  test('mean the latest of several phases of one name (pipeline 2, 9)', async () => {
    const same = (instructions: string) => ({ name: 'x', instructions });
    const { systems } = await run([same('0'), same('1 {{.x}}'), same('2 {{.x}}')], ['first', 'second', 'third']);
    expect(systems).toEqual(['0', '1 first', '2 second']);
  });

  test('may name phases that are called like something every object has (pipeline 2)', async () => {
    const phases = ['constructor', '__proto__', 'toString'].map((name) => ({ name, instructions: '' }));
    const last = { name: 'z', instructions: '{{.constructor}} {{.__proto__}} {{.toString}}' };
    const { systems, warnings } = await run([...phases, last], ['c', 'p', 't', 'z']);
    expect(systems.at(-1)).toBe('c p t');
    expect(warnings).toEqual([]);
  });

  test('cannot be overruled by an output: Query is the prompt (pipeline 2)', async () => {
    const host = hostOf({ agent: { phases: phasesOf('0', '{{.Query}}') }, script: [reply('y')] });
    await host.run({}, { resume: { history: [], completedPhases: [{ name: 'a', output: 'x' }] } });
    expect(systemsOf(host.model)).toEqual(['Go.']);
  });

  test('are the same words after a crash (pipeline 2, 8)', async () => {
    const phases = phasesOf('0', '{{.a}} {{.nobody}}');
    const tools = [toolOf('look')];
    const script = [reply('x {{.Query}}'), callTool('look'), () => new Promise<never>(() => {})];
    const left = await diedWhen(({ iteration }, { calls }) => iteration === 2 && calls.length === 3, {
      agent: { phases },
      isForeign: true,
      tools,
      script,
    });
    const next = hostOf({
      agent: { phases },
      isForeign: true,
      tools,
      store: left,
      script: [callTool('look', { n: 2 }), reply('y')],
    });
    expect(await next.run({ runId: 'r' })).toMatchObject({ status: 'ok', output: 'y' });
    expect(systemsOf(next.model)).toEqual(['x {{.Query}} {{.nobody}}', 'x {{.Query}} {{.nobody}}']);
    expect(next.warnings).toEqual([]);
  });

  test('are not stored: a resumed run has today’s of the phases that are still to begin', async () => {
    const phases = phasesOf('0', 'old {{.a}}');
    const never = () => new Promise<never>(() => {});
    const left = await diedWhen(({ completedPhases }) => completedPhases.length === 1, {
      agent: { phases },
      script: [reply('x'), never],
    });
    expect(JSON.stringify(await (left as ReturnType<typeof memoryStore>).load('r'))).not.toContain('old');
    const next = hostOf({ agent: { phases: phasesOf('0', 'new {{.a}}') }, store: left, script: [reply('y')] });
    await next.run({ runId: 'r' });
    expect(systemsOf(next.model)).toEqual(['new x']);
  });
});
