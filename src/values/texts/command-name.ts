/** Whether the registry of npm has the package. Until then it would hand out what another person publishes under the name. */
export const IS_PUBLISHED: boolean = false;

/** The command of the package, as it is printed: before the name is published it only starts what is installed. */
export const NPX_PAWL: string = IS_PUBLISHED ? 'npx pawl' : 'npx --no-install pawl';
