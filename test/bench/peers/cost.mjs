/** CPU and wall time of a step, ms: of this process only, from the first step of a run to its end. */
export async function costOf(steps, work) {
  const cpu = process.cpuUsage();
  const begun = performance.now();
  await work();
  const wallMs = (performance.now() - begun) / steps;
  const { user, system } = process.cpuUsage(cpu);
  return { cpuMs: (user + system) / 1_000 / steps, wallMs };
}
