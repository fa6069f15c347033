import { type Agent, ask, defineAgent, defineWorkflow, step } from 'pawl';
import { assign, setup } from 'xstate';

const reviewer = (id: string, of: string): Agent =>
  defineAgent({ id, instructions: `You review a document: ${of}. Answer yes or no.` });

const lawyer = reviewer('lawyer', 'is anything in it against the law?');
const editor = reviewer('editor', 'can everyone understand it?');

type Verdict = { readonly by: string; readonly says: string };

/** A document that two agents and a person review at the same time: it is published once two of the three agree. */
export const review = defineWorkflow({
  id: 'review',
  machine: setup({
    types: {
      input: {} as { text: string },
      context: {} as { text: string; verdicts: readonly Verdict[] },
      output: {} as { isPublished: boolean; verdicts: readonly Verdict[] },
    },
    actors: {
      lawyer: step(lawyer),
      editor: step(editor),
      chief: ask({ question: (input: { text: string }) => `Publish this? ${input.text}`, options: ['yes', 'no'] }),
    },
    actions: {
      note: assign({ verdicts: ({ context }, verdict: Verdict) => [...context.verdicts, verdict] }),
    },
    guards: {
      isAgreed: ({ context }, says: string) => context.verdicts.filter((verdict) => verdict.says === says).length >= 2,
    },
  }).createMachine({
    id: 'review',
    context: ({ input }) => ({ text: input.text, verdicts: [] }),
    initial: 'reviewing',
    states: {
      reviewing: {
        // Leaving this state cancels the reviews that are not needed any more.
        always: [
          { guard: { type: 'isAgreed', params: 'yes' }, target: 'published' },
          { guard: { type: 'isAgreed', params: 'no' }, target: 'refused' },
        ],
        invoke: [
          {
            src: 'lawyer',
            id: 'lawyer',
            input: ({ context }) => ({ prompt: context.text }),
            onDone: { actions: { type: 'note', params: ({ event }) => ({ by: 'lawyer', says: event.output.output }) } },
          },
          {
            src: 'editor',
            id: 'editor',
            input: ({ context }) => ({ prompt: context.text }),
            onDone: { actions: { type: 'note', params: ({ event }) => ({ by: 'editor', says: event.output.output }) } },
          },
          {
            src: 'chief',
            id: 'chief',
            input: ({ context }) => ({ text: context.text }),
            onDone: { actions: { type: 'note', params: ({ event }) => ({ by: 'chief', says: event.output }) } },
          },
        ],
      },
      published: { type: 'final' },
      refused: { type: 'final' },
    },
    output: ({ context: { verdicts } }) => ({
      isPublished: verdicts.filter(({ says }) => says === 'yes').length >= 2,
      verdicts,
    }),
  }),
});
