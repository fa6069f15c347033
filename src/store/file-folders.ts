import { join } from 'node:path';

/**
 * Where everything of a store is. `<hash>` stands for a run: no id, however it is spelled, leads anywhere else.
 *
 *   layout                    the number of this layout
 *   runs/<hash>/journal       a run's record and lease; `expiry`: until when the lease was renewed
 *   outcomes/<hash>           a kept outcome
 *   mail/<hash>               commands that wait for a run
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
    locks: join(dir, 'locks'),
    owners: join(dir, 'owners'),
    run: (name: string) => join(runs, name),
    journal: (name: string) => join(runs, name, 'journal'),
    expiry: (name: string) => join(runs, name, 'expiry'),
    outcome: (name: string) => join(outcomes, name),
    mailOf: (name: string) => join(mail, name),
  };
}

export type Folders = ReturnType<typeof foldersIn>;
