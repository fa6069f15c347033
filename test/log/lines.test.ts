import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { jsonLogger, type Logger } from 'pawl';
import { testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { LogLines } from '../../src/log/log.ts';
import { type LogRow, logTable } from '../../src/log/table.ts';
import { CancelledError, ModelError } from '../../src/values/errors.ts';
import { logLinesPage } from '../docs/tables.ts';
import { hostOf, type Warning } from '../fixtures/host.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const traceId = 'a'.repeat(32);

/** Lines that are kept by the method that got them. */
function noting(methods: readonly (keyof Logger)[]) {
  const lines: (Warning & { readonly by: string })[] = [];
  const write = (by: string) => (message: string, fields: Warning['fields']) =>
    void lines.push({ by, message, fields });
  return { lines, logger: Object.fromEntries(methods.map((by) => [by, write(by)])) as unknown as Logger };
}

describe('a log line', () => {
  test('has its event and level, the code of its error, and the run, agent and trace that it is about (operations 10, otel 2)', async () => {
    const host = hostOf({
      tracing: { begin: () => `00-${traceId}-${'b'.repeat(16)}-01`, enter: (_, next) => void next(), event: () => {} },
      onOutcome: () => {
        throw new CancelledError('not now');
      },
    });
    await host.run({ runId: 'r-1' });
    expect(host.warned[0]).toMatchObject({
      message: 'run: onOutcome failed',
      fields: {
        event: 'outcome.delivery.failed',
        level: 'warn',
        code: 'CANCELLED',
        see: 'docs/errors.md#cancelled',
        runId: 'r-1',
        agentId: 'worker',
        traceId,
      },
    });
  });

  test('of an event that is not in the table does not compile (operations 10)', () => {
    const { warn } = new LogLines(noting(['warn']).logger);
    // @ts-expect-error: no row of the table
    expect(() => warn('run.unheard-of')).not.toThrow();
  });

  test('that needs a person goes to `error`, and to `warn` of a logger that has nothing else (operations 11)', () => {
    const [both, one] = [noting(['warn', 'error']), noting(['warn'])];
    for (const { logger } of [both, one]) new LogLines(logger).warn('run.parked', { runId: 'r', code: 'PARKED' });
    expect([both.lines, one.lines]).toMatchObject([
      [{ by: 'error', fields: { level: 'error', code: 'PARKED' } }],
      [{ by: 'warn', fields: { level: 'error' } }],
    ]);
  });

  test('that is repeated is written once a minute, with how many it stands for (operations 11)', async () => {
    const clock = testClock();
    const { lines, logger } = noting(['warn']);
    const log = new LogLines(logger);
    log.clock = clock;
    const fail = (runId: string, error: Error = new ModelError(`no answer for ${runId}`)) =>
      log.warn('checkpoint.save.failed', { runId, error });
    for (let i = 0; i < 60; i++) {
      fail(`r-${i}`);
      await clock.advance(1_000);
    }
    fail('last');
    expect(lines.map(({ fields }) => [fields.runId, fields.count])).toEqual([
      ['r-0', undefined],
      ['last', 60],
    ]);
    // Another code is another line.
    fail('other', new CancelledError('x'));
    expect(lines).toHaveLength(3);
  });

  test('that needs a person is repeated only where it is of the same run (operations 11)', () => {
    const { lines, logger } = noting(['warn']);
    const { warn } = new LogLines(logger);
    for (const runId of ['a', 'b', 'a']) warn('run.parked', { runId, code: 'PARKED' });
    expect(lines.map(({ fields }) => fields.runId)).toEqual(['a', 'b']);
  });

  test('has the event of its row after redaction, and no text that is redacted', async () => {
    const { lines, logger } = noting(['warn', 'error']);
    const redact = (text: string) => text.replaceAll(/[a-z]/g, 'x');
    const host = hostOf({ logger, redact, onOutcome: () => Promise.reject(new CancelledError('secret')) });
    await host.run({ runId: 'r' });
    expect(lines[0]).toMatchObject({ fields: { event: 'outcome.delivery.failed', level: 'warn', runId: 'r' } });
    expect(JSON.stringify(lines)).not.toContain('secret');
  });

  test('is written for any thrown value, and never longer than it may be', () => {
    const { lines, logger } = noting(['warn']);
    const { warn } = new LogLines(logger);
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    warn('http.answer.failed', { status: 500, error: proxy });
    warn('http.stream.broke', { error: { code: 'x'.repeat(5_000), message: 'm', secret: 'not for a log' } });
    warn('notice.failed', { error: 'no pager' });
    warn('due.read.failed', { error: undefined });
    expect(lines.map(({ message }) => message)).toEqual([
      'http: a request was answered with 500',
      'http: a stream broke',
      'executor: notify failed',
      'executor: the due runs cannot be read',
    ]);
    const why = lines.slice(2).map(({ fields: { error, code } }) => ({ error, code }));
    const panic = { code: 'RUN_PANIC', error: { name: 'Error', code: 'RUN_PANIC' } };
    expect(why).toMatchObject([
      { ...panic, error: { ...panic.error, message: 'thrown: no pager' } },
      { ...panic, error: { ...panic.error, message: 'thrown: undefined' } },
    ]);
    expect(String(lines[1]?.fields.code)).toHaveLength(200);
    expect(JSON.stringify(lines)).not.toContain('secret');
  });

  test('reaches no caller when the logger throws', () => {
    const logger = {
      warn: () => {
        throw new Error('full');
      },
    };
    expect(() => new LogLines(logger).warn('run.parked')).not.toThrow();
  });
});

describe('info lines', () => {
  test('say which runs a process takes and ends, to a logger that has `info` (operations 11)', async () => {
    const { lines, logger } = noting(['warn', 'info']);
    await hostOf({ logger }).run({ runId: 'r' });
    expect(lines).toMatchObject([
      {
        by: 'info',
        message: 'run: taken',
        fields: { event: 'run.taken', level: 'info', runId: 'r', agentId: 'worker' },
      },
      { by: 'info', message: 'run: ended', fields: { event: 'run.ended', runId: 'r', status: 'ok' } },
    ]);
  });

  test('are written by jsonLogger only where they are asked for (operations 11)', async () => {
    const linesOf = async (info?: boolean) => {
      const lines: string[] = [];
      const logger = jsonLogger({ ...(info === undefined ? {} : { info }), write: (line) => lines.push(line) });
      await hostOf({ logger }).run();
      return lines.map((line) => JSON.parse(line).level);
    };
    expect([await linesOf(), await linesOf(true)]).toEqual([[], ['info', 'info']]);
  });
});

describe('the table of log lines', () => {
  const rows = Object.entries(logTable as Readonly<Record<string, LogRow>>);

  test('says of each line that is no info its cause and what to do (operations 10)', () => {
    const bare = rows.filter(([, { level, cause, remedy }]) => cause === '' || (level !== 'info' && remedy === ''));
    expect(bare).toEqual([]);
    expect(rows.filter(([event]) => !/^[a-z-]+(\.[a-z-]+)+$/.test(event))).toEqual([]);
  });

  test('is on its page of the docs (operations 10)', () => {
    expect(readFileSync(`${root}/docs/log-lines.md`, 'utf8'), 'run `npm run docs`').toBe(logLinesPage(root));
  });
});
