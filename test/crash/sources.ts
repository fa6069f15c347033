// Workers are plain Node processes, and `pawl` in them means the sources, as it does in all tests: no build is needed.
import { registerHooks } from 'node:module';

const doors: Readonly<Record<string, string>> = {
  pawl: '../../src/index.ts',
  'pawl/testing': '../../src/testing/index.ts',
  'pawl/machines': '../../machines/index.ts',
  'pawl/fan-out': '../../src/fan-out/index.ts',
  'pawl/stores/file': '../../src/store/file.ts',
  'pawl/stores/sqlite': '../../src/store/sqlite.ts',
  'pawl/stores/postgres': '../../src/store/postgres.ts',
};

registerHooks({
  resolve(specifier, context, next) {
    const door = doors[specifier];
    return door === undefined
      ? next(specifier, context)
      : { url: new URL(door, import.meta.url).href, shortCircuit: true };
  },
});
