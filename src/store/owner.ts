/**
 * Asked for rather than imported: an import of `node:fs` by name loads streams, promises and readline with it, a tenth of what
 * the whole package costs to import.
 */
const fs = () => process.getBuiltinModule('node:fs');

/**
 * Who works on a run: `host|boot|pid namespace|pid|start time|nonce`. All but the nonce say which process it is, so that
 * another process of the same machine can see that it is gone, without waiting for its lease to run out.
 */
export function newOwner(): string {
  return [...machine(), String(process.pid), startTime(process.pid), crypto.randomUUID()].join('|');
}

/**
 * Whether an owner is certainly a dead process of this machine, as it runs now: no process of its pid, or one that started at
 * another time. Whatever cannot be seen counts as alive: another host, or one of the same name, another container, no /proc.
 * What is left by an earlier boot looks like another host of the same name; the lease of such an owner runs out.
 */
export function isDeadProcess(owner: string): boolean {
  const [host, boot, namespace, pid = '', started = ''] = owner.split('|');
  const [ourHost, ourBoot, ourNamespace] = machine();
  if (host !== ourHost || !boot || boot !== ourBoot) return false;
  if (namespace !== ourNamespace || !/^[1-9]\d*$/.test(pid)) return false;
  if (!isRunning(Number(pid))) return true;
  return started !== '' && startTime(Number(pid)) !== started;
}

/** The same of who left something in a file of this machine: an owner of another boot of this host is dead as well. */
export function isDeadOwner(owner: string): boolean {
  const [host, boot] = owner.split('|');
  const [ourHost, ourBoot] = machine();
  if (host === ourHost && boot && ourBoot && boot !== ourBoot) return true;
  return isDeadProcess(owner);
}

let identity: readonly string[] | undefined;

function machine(): readonly string[] {
  identity ??= [
    process.getBuiltinModule('node:os').hostname().replaceAll('|', '_'),
    read(() => fs().readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    read(() => fs().readlinkSync('/proc/self/ns/pid')),
  ];
  return identity;
}

/** Field 22 of /proc/<pid>/stat; a zombie (state Z) works on nothing and counts as gone. */
function startTime(pid: number): string {
  const fields =
    read(() => fs().readFileSync(`/proc/${pid}/stat`, 'utf8'))
      .split(') ')
      .at(-1)
      ?.split(' ') ?? [];
  return fields[0] === 'Z' ? 'zombie' : (fields[19] ?? '');
}

/** Whether there is a process of this number on this machine, as far as can be seen from here. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

function read(get: () => string): string {
  try {
    return get();
  } catch {
    return '';
  }
}
