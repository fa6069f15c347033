/**
 * The permissions of files that Pawl makes: they are for this user alone, regardless of the umask. Existing files keep
 * their permissions.
 */
export const PRIVATE_FILE = 0o600;
/** The permissions of folders that Pawl makes: they are for this user alone. */
export const PRIVATE_FOLDER = 0o700;
