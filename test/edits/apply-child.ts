import { applyWith } from '../../src/edits/apply.ts';
import { rewindWith } from '../../src/edits/undo.ts';
import { newOwner } from '../../src/store/owner.ts';
import { faultyFiles } from '../files/faulty.ts';

/** Applies or rewinds, and kills itself when it is about to make its n-th call to the file system. */
const [role, root = '', last = '0', writes = '[]'] = process.argv.slice(2);
const faults = faultyFiles();
faults.plan(() => {
  if (faults.calls.length === Number(last)) process.kill(process.pid, 'SIGKILL');
  return undefined;
});
const place = { root, worker: { files: faults.files, newOwner } };
if (role === 'rewind') await rewindWith(place);
else await applyWith({ proposedWrites: JSON.parse(writes) }, place);
