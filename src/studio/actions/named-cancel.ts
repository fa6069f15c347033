import type { Route, RunCall } from '../../http/route.ts';
import type { Person } from '../../index.ts';

/**
 * Makes the route that cancels a run name the person in the reason: the error of the ended run is the only place that keeps who
 * cancelled it. Any other route stays as it is.
 */
export function namingWhoCancels(route: Route): Route {
  if (route.path !== '/runs/:runId/cancel' || route.of !== 'run') return route;
  const { handle, ...rest } = route;
  return {
    ...rest,
    handle: (call: RunCall) => {
      const { by } = call.grant;
      return by ? handle({ ...call, body: { ...call.body, reason: reasonOf(call.body.reason, by) } }) : handle(call);
    },
  };
}

function reasonOf(given: unknown, { id, name }: Person): string {
  const reason = typeof given === 'string' && given.trim() !== '' ? given : 'the run was cancelled';
  return `${reason} (by ${name === undefined ? id : `${name}, ${id}`})`;
}
