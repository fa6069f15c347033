import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { emptyFolder } from '../cli/pawl.ts';
import { packageFlags } from '../toolchain/programs.ts';
import { StudioProcess } from './studio-process.ts';

const play = fileURLToPath(new URL('../../docs/examples/refunds/play.ts', import.meta.url));

interface Waits {
  readonly items: readonly {
    readonly runId: string;
    readonly id: string;
    readonly prompt: string;
    readonly digest: string;
  }[];
}

test('the refund desk is played through in Studio: an approval is given to a Studio that was killed and started again, money moves once, and the ended run is shown whole (studio 12, 26)', async () => {
  const cwd = emptyFolder();
  const path = join(cwd, 'refunds.db');
  const env = { ...process.env, REFUNDS: path, REFUNDS_MS: '10' };
  const desk = spawn(process.execPath, [...packageFlags, play], { cwd, env, stdio: ['ignore', 'pipe', 'ignore'] });
  let said = '';
  desk.stdout.on('data', (chunk) => (said += chunk));
  const args = ['--store', path, '--write'];
  let studio = await StudioProcess.start(args, { cwd });
  try {
    let waits: Waits['items'] = [];
    while (waits.length < 2) {
      await sleep(20);
      waits = ((await studio.get('/waiting')).body as unknown as Waits).items ?? [];
    }
    const wait = waits.find(({ runId }) => runId === 'case-2');
    expect(wait).toMatchObject({ prompt: 'Refund order A1?' });
    const { port } = studio.facts;
    const { token } = studio;
    studio.pawl.child.kill('SIGKILL');
    await studio.pawl.ended;
    studio = await StudioProcess.start([...args, '--port', String(port)], { cwd });
    expect({ port: studio.facts.port, token: studio.token }).toEqual({ port, token });
    const answer = { how: 'approve', digest: wait?.digest, note: 'as agreed' };
    expect((await studio.post(`/runs/case-2/answers/${wait?.id}`, answer)).status).toBeLessThan(300);
    for (let state = ''; state !== 'ended'; await sleep(20)) {
      const { body } = await studio.get('/runs/case-2/record');
      state = (body.verdict as { verdict: string }).verdict;
      if (state === 'ended') expect(body).toMatchObject({ line: { state: 'ok' }, record: { messages: 6 } });
    }
    expect(said.match(/money moves: A1/g)).toHaveLength(1);
    expect((await studio.get('/runs/case-2/messages')).status).toBe(200);
    await studio.stop();
  } finally {
    desk.kill('SIGKILL');
    studio.pawl.child.kill('SIGKILL');
  }
});
