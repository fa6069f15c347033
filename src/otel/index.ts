export { type IdGenerator, runIds } from './ids.ts';
export { type OpenTelemetryOptions, openTelemetry } from './open-telemetry.ts';
