import { join, sep } from 'node:path';

/**
 * Returns the paths of all folders and files of a file store. `<hash>` stands for a run: no id, however it is spelled,
 * leads anywhere else.
 *
 *   layout                    the number of this layout
 *   runs/<hash>/journal       a run's record and lease; `expiry`: until when the lease was renewed; `waits`: for which topics;
 *                             `published`: events of the step in progress
 *   ended/<hash>/             the folder of a run that ended and whose record is kept; `entry`: its entry in lists
 *   outcomes/<hash>           a kept outcome
 *   mail/<hash>               commands that wait for a run
 *   threads/<hash>            a thread and its turns
 *   topics/<topic>            what waits for a topic, and signals that were early or were delivered
 *   due/<time>/<hash>         this outcome's time is over by then: spares looking at all of them
 *   locks/<hash>              who writes at the moment
 *   owners/                   one file for each process that has the store open
 */
export function foldersIn(dir: string) {
  const runs = join(dir, 'runs');
  const outcomes = join(dir, 'outcomes');
  const mail = join(dir, 'mail');
  return {
    dir,
    runs,
    outcomes,
    mail,
    layout: join(dir, 'layout'),
    due: join(dir, 'due'),
    topics: join(dir, 'topics'),
    locks: join(dir, 'locks'),
    owners: join(dir, 'owners'),
    // Names are safe: nothing has to be normalised.
    run: (name: string) => runs + sep + name,
    journal: (name: string) => `${runs}${sep}${name}${sep}journal`,
    expiry: (name: string) => `${runs}${sep}${name}${sep}expiry`,
    waits: (name: string) => `${runs}${sep}${name}${sep}waits`,
    published: (name: string) => `${runs}${sep}${name}${sep}published`,
    threads: join(dir, 'threads'),
    thread: (name: string) => join(dir, 'threads', name),
    topic: (topic: string) => join(dir, 'topics', topic),
    ended: join(dir, 'ended'),
    endedRun: (name: string) => join(dir, 'ended', name),
    endedJournal: (name: string) => join(dir, 'ended', name, 'journal'),
    endedPublished: (name: string) => join(dir, 'ended', name, 'published'),
    entry: (name: string) => join(dir, 'ended', name, 'entry'),
    /** The entry of a run that is about to end. */
    newEntry: (name: string) => `${runs}${sep}${name}${sep}entry`,
    outcome: (name: string) => outcomes + sep + name,
    mailOf: (name: string) => mail + sep + name,
  };
}

export type Folders = ReturnType<typeof foldersIn>;
