// The drawing of a workflow's machine, as the server sends it and the page draws it.

/** Left, top, width and height, px. */
type DrawnBox = readonly [x: number, y: number, width: number, height: number];

/** A state in the drawing of a machine. */
export interface DrawnState {
  /** '' for the machine itself. */
  readonly path: string;
  /** What the drawing has room for. */
  readonly name: string;
  readonly type: 'atomic' | 'compound' | 'parallel' | 'final' | 'history';
  /** It is a part of a parallel state. */
  readonly isRegion?: true;
  /** Absent in a machine that is too large to be drawn. */
  readonly box?: DrawnBox;
  /** What it calls, by its actor; and the transitions that do not leave it. */
  readonly lines?: readonly { readonly text: string; readonly actorId?: string; readonly id?: string }[];
  /** Its whole name, and its description. */
  readonly about?: string;
}

/** What stands on an arrow: a line for each of its transitions. `timer`: the timer that takes it. */
export interface DrawnLabel {
  readonly box: DrawnBox;
  readonly lines: readonly { readonly id: string; readonly text: string; readonly timer?: string }[];
}

/** An arrow between two states; one from a mark of a beginning has no states. */
export interface DrawnArrow {
  readonly from?: string;
  readonly to?: string;
  /** As SVG draws it. */
  readonly path: string;
  readonly label?: DrawnLabel;
}

/** The answer of `GET /runs/:id/chart`: the machine of a workflow, laid out. One that is too large has no width, and its first states. */
export interface MachineDrawing {
  readonly width: number;
  readonly height: number;
  readonly states: readonly DrawnState[];
  readonly arrows: readonly DrawnArrow[];
  /** The middle of each mark of a beginning. */
  readonly dots: readonly (readonly [x: number, y: number])[];
}
