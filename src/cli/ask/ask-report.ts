import { oneLine } from '../ui/failure.ts';

/** The part of an answer that is printed. */
interface PrintedAnswer {
  readonly modelId: string;
  readonly text: string;
  readonly error?: string;
  /** It was interrupted: the text is the part so far. */
  readonly interrupted: boolean;
}

/**
 * Formats the answers of `pawl ask` for stdout: for each model a heading, and below it its text, unchanged.
 * @example output.printText(reportOf(responses)) // '## sonnet\n\nAsk for all at once.\n\n## gpt\n\n…'
 */
export function askReportOf(answers: readonly PrintedAnswer[]): string {
  return answers.map((answer) => [headingOf(answer), ...partsOf(answer)].join('\n\n')).join('\n\n');
}

function headingOf({ modelId, error, interrupted }: PrintedAnswer): string {
  const state = error !== undefined ? ' (failed)' : interrupted ? ' (interrupted)' : '';
  return `## ${oneLine(modelId)}${state}`;
}

function partsOf({ text, error }: PrintedAnswer): string[] {
  const answer = text.replace(/^\s*\n/, '').trimEnd();
  const parts = [...(answer === '' ? [] : [answer]), ...(error === undefined ? [] : [`Error: ${oneLine(error)}`])];
  return parts.length > 0 ? parts : ['(no text)'];
}
