import { describe, expect, test } from 'vitest';
import { info, noon, tool, totals, usage } from './run-facts.ts';
import { freshPath, openAudit, sql } from './scene.ts';

describe('what an audit writes of a run', () => {
  test('is who asked whom for what, its steps, tool calls, phases and events, and how it ended (supervision 5)', async () => {
    const { audit, clock } = openAudit();
    const recorder = audit.startRun(info('run', { inputs: { file: 'a.txt' }, channelId: 'c', guildId: 'g' }));
    recorder.logEvent?.('run.started', { seq: 1 });
    recorder.onPhase?.({ index: 0, name: 'survey', state: 'started' });
    await clock.advance(10);
    recorder.onTool?.(tool());
    recorder.onTool?.(tool({ callId: 'c2', isLate: true }));
    recorder.onStep?.({ step: 1, usage: usage(10, 5), tools: ['lookup'] });
    recorder.logEvent?.('checkpoint.saved', { iteration: 1 });
    recorder.onPhase?.({ index: 0, name: 'survey', state: 'done', output: 'all there' });
    recorder.logEvent?.('model.retry', { attempt: 1, error: { code: 'MODEL' } });
    await clock.advance(10);
    const spend = { tokens: 30, usd: 0.25, seconds: 1.5 };
    await recorder.close(
      'error',
      'so far',
      { name: 'E', code: 'MODEL', message: 'down' },
      totals({ spend, saveErrors: 2 }),
    );
    expect(await audit.run('run')).toEqual({
      runId: 'run',
      parentRunId: '',
      agentId: 'researcher',
      agentName: 'Researcher',
      callerId: 'ada',
      channelId: 'c',
      guildId: 'g',
      modelTier: 'fast',
      prompt: 'Look it up',
      inputs: { file: 'a.txt' },
      startedAt: noon,
      seenAt: noon + 20,
      endedAt: noon + 20,
      status: 'error',
      resumes: 0,
      iterations: 1,
      usage: usage(10, 5),
      spend,
      elapsedMs: 1_000,
      saveErrors: 2,
      dropped: 0,
      output: 'so far',
      error: { name: 'E', code: 'MODEL', message: 'down' },
      steps: [{ at: noon + 10, step: 1, usage: usage(10, 5), tools: ['lookup'] }],
      tools: [
        { at: noon + 10, ...tool() },
        { at: noon + 10, ...tool({ callId: 'c2', isLate: true }) },
      ],
      phases: [
        { at: noon, index: 0, name: 'survey', state: 'started' },
        { at: noon + 10, index: 0, name: 'survey', state: 'done', output: 'all there' },
      ],
      events: [
        { at: noon, type: 'run.started', fields: { seq: 1 } },
        { at: noon + 10, type: 'checkpoint.saved', fields: { iteration: 1 } },
        { at: noon + 10, type: 'model.retry', fields: { attempt: 1, error: { code: 'MODEL' } } },
      ],
      isCut: false,
    });
  });

  test('can be read while the run goes on, with what it has used so far (supervision 5)', async () => {
    const { audit } = openAudit();
    const recorder = audit.startRun(info('run'));
    recorder.onStep?.({ step: 1, usage: usage(10, 5), tools: [] });
    recorder.onStep?.({ step: 2, usage: usage(30, 8), tools: [] });
    expect(await audit.run('run')).toMatchObject({ status: 'open', iterations: 2, usage: usage(30, 8), output: '' });
    expect(await audit.run('run')).not.toHaveProperty('endedAt');
    expect(await audit.run('other')).toBe(null);
  });

  test('a recorder is closed exactly once: what comes later changes nothing (supervision 5)', async () => {
    const { audit } = openAudit();
    const recorder = audit.startRun(info('run'));
    await recorder.close('ok', 'done', undefined, totals());
    recorder.onStep?.({ step: 9, usage: usage(999), tools: [] });
    await recorder.close('error', 'no', { name: 'E', code: 'X', message: 'x' }, totals({ iterations: 9 }));
    const found = await audit.run('run');
    expect(found).toMatchObject({ status: 'ok', output: 'done', iterations: 1, steps: [] });
    expect(found).not.toHaveProperty('error');
  });

  test('a million entries of a run cost what each of them says (supervision 5)', async () => {
    const { audit, path } = openAudit({ maxChars: 1_000 });
    const sizes: number[] = [];
    const recorder = audit.startRun(info('run'));
    for (const _ of [1, 2]) {
      for (let step = 1; step <= 2_000; step++) {
        recorder.onTool?.(tool({ step, output: { type: 'text', value: 'x'.repeat(400) } }));
        recorder.onStep?.({ step, usage: usage(step), tools: ['lookup'] });
      }
      expect((await audit.runs()).length).toBe(1);
      sql(path, 'PRAGMA wal_checkpoint(TRUNCATE)');
      sizes.push(
        Number(sql(path, 'SELECT page_count * page_size AS size FROM pragma_page_count, pragma_page_size')[0]?.size),
      );
    }
    const [half = 0, whole = 0] = sizes;
    expect(whole / half).toBeLessThan(2.1);
    expect(whole / 4_000).toBeLessThan(1_500);
  });
});

describe('a run that goes on in another process', () => {
  test('goes on in its row: it is counted as resumed, and ends when it ends (supervision 5)', async () => {
    const path = freshPath();
    const first = openAudit({ path });
    const one = first.audit.startRun(info('run'));
    one.logEvent?.('run.started', {});
    one.onStep?.({ step: 1, usage: usage(10), tools: [] });
    await one.close('interrupted', '', { name: 'E', code: 'ERR_SHUTDOWN', message: '' }, totals({ usage: usage(10) }));
    expect(await first.audit.runs()).toMatchObject([{ status: 'interrupted', resumes: 0, iterations: 1 }]);
    expect((await first.audit.runs())[0]).not.toHaveProperty('endedAt');

    const { audit } = openAudit({ path });
    const two = audit.startRun(info('run', { startedAt: noon + 5_000 }));
    expect(await audit.runs()).toMatchObject([{ status: 'open', resumes: 1, startedAt: noon }]);
    two.logEvent?.('run.resumed', { iteration: 1 });
    two.onStep?.({ step: 2, usage: usage(25), tools: [] });
    await two.close('ok', 'done', undefined, totals({ usage: usage(25), iterations: 2 }));
    expect(await audit.runs()).toMatchObject([{ status: 'ok', resumes: 1, iterations: 2, usage: usage(25) }]);
    const detail = await audit.run('run');
    expect(detail?.steps.map(({ step }) => step)).toEqual([1, 2]);
    expect(detail).not.toHaveProperty('error');
  });

  test('of a step that is made again after a crash, the last one stands (supervision 5)', async () => {
    const path = freshPath();
    const dead = openAudit({ path }).audit;
    dead.startRun(info('run')).onStep?.({ step: 1, usage: usage(10), tools: ['a'] });
    await dead.runs();
    const { audit } = openAudit({ path });
    const recorder = audit.startRun(info('run'));
    recorder.onStep?.({ step: 1, usage: usage(12), tools: ['b'] });
    expect((await audit.run('run'))?.steps).toMatchObject([{ step: 1, usage: usage(12), tools: ['b'] }]);
  });

  test('is not closed by the process that lost it (supervision 5)', async () => {
    const path = freshPath();
    const frozen = openAudit({ path }).audit;
    const lost = frozen.startRun(info('run'));
    lost.onStep?.({ step: 1, usage: usage(10), tools: [] });
    await frozen.runs();
    const { audit } = openAudit({ path });
    const heir = audit.startRun(info('run'));
    await heir.close('ok', 'done', undefined, totals());
    await lost.close('interrupted', '', { name: 'E', code: 'LEASE_LOST', message: '' }, totals());
    expect(await audit.run('run')).toMatchObject({ status: 'ok', output: 'done' });
  });

  test('and had ended already, only its record was not gone yet, is not a second run (supervision 5)', async () => {
    const path = freshPath();
    await openAudit({ path }).audit.startRun(info('run')).close('ok', 'done', undefined, totals());
    const { audit } = openAudit({ path });
    const again = audit.startRun(info('run'));
    expect(await audit.runs()).toMatchObject([{ status: 'ok', resumes: 0 }]);
    again.logEvent?.('run.resumed', { iteration: 1 });
    await again.close('ok', 'done', undefined, totals());
    expect(await audit.runs()).toMatchObject([{ status: 'ok', resumes: 1 }]);
  });

  test('a new run under an id that was used before is a run of its own (supervision 5)', async () => {
    const path = freshPath();
    const first = openAudit({ path });
    const one = first.audit.startRun(info('run'));
    one.logEvent?.('run.started', {});
    await one.close('ok', 'first', undefined, totals());
    const { audit } = openAudit({ path });
    const two = audit.startRun(info('run', { startedAt: noon + 9_000 }));
    await audit.runs();
    two.logEvent?.('run.started', {});
    await two.close('error', 'second', undefined, totals());
    expect(await audit.runs()).toMatchObject([{ status: 'error', startedAt: noon + 9_000 }, { status: 'ok' }]);
    expect(await audit.run('run')).toMatchObject({ output: 'second', resumes: 0 });
  });
});

describe('a long or secret value', () => {
  test('is written up to a documented size, and says how much is missing (supervision 5)', async () => {
    const { audit } = openAudit({ maxChars: 100 });
    const recorder = audit.startRun(info('run', { prompt: 'p'.repeat(5_000) }));
    const long = 'x'.repeat(10_000);
    recorder.onTool?.(tool({ input: { text: long }, output: { type: 'text', value: long } }));
    recorder.onTool?.(
      tool({ input: Array.from({ length: 1_000 }, (_, i) => i), output: { type: 'json', value: [long] } }),
    );
    await recorder.close('ok', 'o'.repeat(1_601), undefined, totals());
    const found = await audit.run('run');
    const cut = `${'x'.repeat(100)}… (9900 more characters)`;
    expect(found?.tools[0]).toMatchObject({ input: { text: cut }, output: { type: 'text', value: cut } });
    expect(found?.tools[1]?.input).toEqual({ clipped: expect.stringMatching(/^\[0,1,2,.*… \(\d+ more characters\)$/) });
    expect(found?.tools[1]?.output).toEqual({ type: 'json', value: [cut] });
    expect(found?.prompt).toBe(`${'p'.repeat(1_600)}… (3400 more characters)`);
    expect(found?.output).toBe(`${'o'.repeat(1_600)}… (1 more characters)`);
  });

  test('is written as the host’s redact gives it, wherever it stands (supervision 5)', async () => {
    const secret = 'sk-123456';
    const fields: string[] = [];
    const redact = (field: string, value: unknown) => {
      fields.push(field);
      return JSON.parse(JSON.stringify(value).replaceAll(secret, '***'));
    };
    const { audit, path } = openAudit({ redact });
    const recorder = audit.startRun(info('run', { prompt: secret, inputs: { key: secret } }));
    recorder.onTool?.(tool({ input: { key: secret }, output: { type: 'text', value: `it is ${secret}` } }));
    recorder.onPhase?.({ index: 0, name: 'p', state: 'done', output: secret });
    recorder.logEvent?.('model.retry', { error: secret });
    await recorder.close('error', secret, { name: 'E', code: 'X', message: secret }, totals());
    await audit.close();
    const rows = ['runs', 'ends', 'entries'].flatMap((table) => sql(path, `SELECT * FROM ${table}`));
    expect(JSON.stringify(rows)).not.toContain(secret);
    expect(JSON.stringify(rows)).toContain('it is ***');
    expect(new Set(fields)).toEqual(
      new Set(['prompt', 'inputs', 'tool.input', 'tool.output', 'phase.output', 'event', 'output', 'error']),
    );
  });

  test.for([
    [
      'throws',
      () => {
        throw new Error('no');
      },
    ],
    ['rejects', () => Promise.reject(new Error('no'))],
  ] as const)('is not written at all when redact %s (supervision 5)', async ([_, redact]) => {
    const { audit } = openAudit({ redact });
    const recorder = audit.startRun(info('run', { prompt: 'secret' }));
    recorder.onTool?.(tool({ input: 'secret' }));
    await recorder.close('ok', 'secret', undefined, totals());
    expect(JSON.stringify(await audit.run('run'))).not.toContain('secret');
    expect((await audit.run('run'))?.prompt).toBe('[not written: redact failed]');
  });
});
