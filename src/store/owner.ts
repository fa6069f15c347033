/**
 * Not imported: an import of `node:fs` by name loads streams, promises and readline with it, a tenth of the package's import
 * time.
 */
const fs = () => process.getBuiltinModule('node:fs');

/**
 * Names the owner of a run: `host|boot|pid namespace|pid|start time|nonce`. All but the nonce identify the process, so that
 * another process of the same machine can see its death, without waiting for its lease to expire.
 */
export function newOwner(): string {
  return [...machine(), String(process.pid), ownStartTime(), crypto.randomUUID()].join('|');
}

/**
 * Returns whether an owner is certainly a dead process of this machine in its present boot: no process of its pid, or one with
 * another start time. Any uncertain owner counts as alive: another host, or one of the same name, another container, no /proc.
 * An owner of an earlier boot looks like another host of the same name; its lease expires.
 */
export function isDeadProcess(owner: string): boolean {
  const [host, boot, namespace, pid = '', started = ''] = owner.split('|');
  const [ourHost, ourBoot, ourNamespace] = machine();
  if (host !== ourHost || !boot || boot !== ourBoot) return false;
  if (namespace !== ourNamespace || !/^[1-9]\d*$/.test(pid)) return false;
  if (Number(pid) === process.pid) return started !== '' && started !== ownStartTime();
  if (!isRunning(Number(pid))) return true;
  return started !== '' && startTime(Number(pid)) !== started;
}

/**
 * Returns whether the owner of a file on this machine is certainly a dead process: an owner of another boot of this host is
 * dead as well.
 */
export function isDeadOwner(owner: string): boolean {
  const [host, boot] = owner.split('|');
  const [ourHost, ourBoot] = machine();
  if (host === ourHost && boot && ourBoot && boot !== ourBoot) return true;
  return isDeadProcess(owner);
}

/**
 * Returns an owner as a person names it: `process 4711 on this machine`. An owner of another form stays as it is.
 * @example ownerName(newOwner())
 */
export function ownerName(owner: string): string {
  const [host = '', boot, namespace, pid = ''] = owner.split('|');
  if (pid === '') return owner;
  const isHere = [host, boot, namespace].every((part, at) => part === machine()[at]);
  return `process ${pid} on ${isHere ? 'this machine' : host}`;
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

let ownStart: string | undefined;

/** Each look at a list of runs asks for it, once for each run of this process. */
function ownStartTime(): string {
  ownStart ??= startTime(process.pid);
  return ownStart;
}

/** Field 22 of /proc/<pid>/stat; a zombie (state Z) does no work and counts as dead. */
function startTime(pid: number): string {
  const fields =
    read(() => fs().readFileSync(`/proc/${pid}/stat`, 'utf8'))
      .split(') ')
      .at(-1)
      ?.split(' ') ?? [];
  return fields[0] === 'Z' ? 'zombie' : (fields[19] ?? '');
}

/** Returns whether a process of this number exists on this machine, as far as this process can see. */
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
