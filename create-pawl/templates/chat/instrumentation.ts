// Next calls it once, when the server starts and before it answers.
export async function register() {
  if (process.env.NEXT_RUNTIME !== 'nodejs') return;
  const { executor } = await import('./runs.ts');
  executor.shutdownOnSignals();
  await executor.recover(); // continues what the last process left
}
