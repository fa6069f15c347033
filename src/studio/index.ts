export { studioHandler } from './handler.ts';
export type { StudioOptions } from './studio.ts';
