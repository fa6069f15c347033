// The entry point `pawl/stores/file`.
export { type FileStore, type FileStoreOptions, fileStore } from './file-store.ts';
