import type { Finding } from './checks.ts';

/** One part of the folder: a subfolder, or the files that lie in none. */
export interface Part {
  readonly part: string;
  readonly about: string;
  readonly files: readonly string[];
}

/** The answer of the surveyor. */
export interface Survey {
  readonly folder: string;
  /** Files that were too many to look at. */
  readonly leftOut: number;
  readonly parts: readonly Part[];
}

/** The answer of a reviewer. */
export interface Review {
  readonly part: string;
  readonly title: string;
  /** How many could be read. */
  readonly files: number;
  readonly findings: readonly Finding[];
}

/** The answer of the editor. */
export interface Reviews {
  readonly reviews: readonly Review[];
  readonly failed: readonly { readonly part: string; readonly why: string }[];
}

/** What was looked at and found in all. */
export function totalsOf({ reviews }: Reviews): { readonly files: number; readonly findings: number } {
  return {
    files: reviews.reduce((sum, review) => sum + review.files, 0),
    findings: reviews.reduce((sum, review) => sum + review.findings.length, 0),
  };
}
