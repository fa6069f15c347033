import { type CommandRow, STORE } from './row.ts';

/** The commands that read recorded runs, and run them again. */
export const labCommands = {
  export: {
    takes: '<run id>…',
    does: 'write recorded runs to a file: for replays, tests, and other stores',
    about: `Writes recorded runs as lines of JSON, each followed by the runs that its calls began: to stdout, or with --out to a file that
is whole or not there. A run that ended is kept as \`retention\` of its executor says. Texts are those of the record; secrets of this
process's environment are replaced by the names of their variables.`,
    options: {
      out: 'the file; it is replaced. Only this user may read it',
      decrypt: 'an encrypted store is written as plain text',
      store: STORE,
      json: 'nothing changes: each line is JSON',
    },
    more: 'Exit codes: 0 it is written; 2 a run is not there, or nothing was written.',
    examples: ['pawl export order-17 order-18 --out runs.jsonl', 'pawl export order-17 | head -1 | jq .status'],
    load: async () => (await import('../lab/files-commands.ts')).exportCommand,
  },
  import: {
    takes: '<file>',
    does: 'put exported runs into a store, as runs that have ended',
    about: `Puts the runs of a file into the store. A run that the store knows stays as it is. An imported run has ended: no process continues
it, and its end is not delivered. It can be shown, forked and replayed, and it is kept until it is erased.`,
    options: {
      store: STORE,
      json: '{ store, imported: [runId], skipped: [runId], damaged: [{ line, message }] }',
    },
    more: 'Exit codes: 0 done; 1 some lines are damaged, the rest is imported; 2 there is no such file.',
    examples: ['pawl import runs.jsonl --store lab.db'],
    load: async () => (await import('../lab/files-commands.ts')).importCommand,
  },
  replay: {
    takes: '<file or run id>',
    does: 'run recorded runs again, without the world, and say what differs',
    about: `Runs recorded runs again with the agent of a module: from their recordings, without a store, a person, a model or a tool. With the
agent of the time each is the same; with another version of it you see where it would differ. With --live-model the models of the module
are asked, and tools are answered from the recording. Importing the module runs its top level. Runs that calls of other runs began are left
out, unless the module is that of their agent.`,
    options: {
      agent: 'the agent module',
      'live-model': 'asks the models of the module, as `pawl run` does',
      tools:
        '`strict`: a call with an input that is not recorded is missed; else the next recorded one of its tool answers',
      'on-miss': `a call without a recording: \`error\` tells the model, \`read-live\` runs tools that only read; else the replay
ends there`,
      store: STORE,
      json: 'JSON lines on stdout: the report of each run, as replay() of pawl/lab returns it',
    },
    more: `Exit codes: 0 all runs are the same (with --live-model: all end ok); 1 not all, or lines of the file are damaged; 2 bad input, or there
was no run to replay.`,
    examples: [
      'pawl replay runs.jsonl --agent agent.ts',
      'pawl replay order-17 --agent agent.ts --live-model --on-miss error',
    ],
    load: async () => (await import('../lab/replay-command.ts')).replayCommand,
  },
} satisfies Readonly<Record<string, CommandRow>>;
