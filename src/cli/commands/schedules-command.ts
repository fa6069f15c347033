import type { ListedSchedule } from '../../index.ts';
import { hasCode } from '../../values/error-data.ts';
import type { CliCommand, CommandContext } from '../command.ts';
import { controlExecutor } from '../open/control-executor.ts';
import { exitCodes, Failure, lineOf, oneLine } from '../ui/failure.ts';
import { count } from '../ui/format.ts';
import { PAWL } from '../ui/shell-words.ts';
import { table } from '../ui/table.ts';
import { withStore } from './obstacle.ts';

/** Runs `pawl schedules`: lists the schedules of a store, pauses one, resumes one. */
export const schedulesCommand: CliCommand = (context) => {
  const [verb, id] = context.args.words;
  if (verb === undefined) return list(context);
  if (verb !== 'pause' && verb !== 'resume')
    throw new Failure(`\`pawl schedules\` takes pause or resume, not ${JSON.stringify(oneLine(verb))}`);
  if (id === undefined)
    throw new Failure(`\`pawl schedules ${verb}\` needs the id of a schedule; \`${PAWL} schedules\` lists them`);
  return change(context, verb, id);
};

function list({ args, output }: CommandContext): Promise<number> {
  return withStore(args, async (store) => {
    const schedules = await controlExecutor(store).schedules();
    if (args.json) output.printJson({ store: store.path, schedules }, 2);
    else if (schedules.length === 0)
      output.say(`no schedule in ${store.path}; an executor with schedules puts its own there`);
    else for (const line of table([heads, ...schedules.map(cells)])) output.print(line);
    return exitCodes.ok;
  });
}

const heads = ['SCHEDULE', 'TICKS', 'NEXT', 'LAST', 'SKIPPED', 'MISSED', 'FAILED'];

function cells(schedule: ListedSchedule): string[] {
  const { id, cron, every, timeZone, lastAt, skipped, missed, failed } = schedule;
  const times = cron === undefined ? `every ${every ?? '?'}` : `${cron}${timeZone === undefined ? '' : ` ${timeZone}`}`;
  const counts = [skipped, missed, failed].map((each) => String(each.count));
  return [id, times, nextOf(schedule), lastAt === undefined ? '-' : timeOf(lastAt), ...counts];
}

function nextOf({ nextAt, paused, gone, disabled }: ListedSchedule): string {
  if (gone) return 'gone';
  if (paused) return `paused${paused.by ? ` by ${paused.by.name ?? paused.by.id}` : ''}`;
  if (disabled) return 'disabled';
  return nextAt === undefined ? '-' : timeOf(nextAt);
}

const timeOf = (at: number) => new Date(at).toISOString().replace('.000Z', 'Z');

function change({ args, output }: CommandContext, verb: 'pause' | 'resume', id: string): Promise<number> {
  return withStore(args, async (store) => {
    const { schedules } = controlExecutor(store);
    const by = args.by === undefined ? {} : { by: { id: args.by } };
    try {
      await schedules[verb](id, by);
    } catch (error) {
      if (!hasCode(error, 'SCHEDULE_NOT_FOUND')) throw error;
      const { length } = await schedules();
      throw new Failure(
        `${lineOf(error)} in ${store.path}, which has ${count(length, 'schedule')}; \`${PAWL} schedules\` lists them`,
      );
    }
    if (args.json) output.printJson({ id, status: verb === 'pause' ? 'paused' : 'resumed' });
    else output.say(`${verb}d ${oneLine(id)}`);
    return exitCodes.ok;
  });
}
