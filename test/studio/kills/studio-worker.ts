// A Studio that does one action, to be killed in the middle of it: node -C pawl-source studio-worker.ts '<job as JSON>'
import { writeSync } from 'node:fs';
import { act, type Job } from './act.ts';

const answer = await act(JSON.parse(process.argv[2] ?? '') as Job);
writeSync(1, JSON.stringify(answer));
