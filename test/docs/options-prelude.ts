// What the examples of docs/options.md name: they are compiled below this text.
import type { LanguageModelV4 } from '@ai-sdk/provider';
import * as pawl from 'pawl';
import type { Grant } from 'pawl/http';
import * as pawlOtel from 'pawl/otel';
import * as pawlPrices from 'pawl/prices';
import * as kit from 'pawl/stores/kit';
import * as sqlite from 'pawl/stores/sqlite';
import * as testing from 'pawl/testing';
import { Client, Pool } from 'pg';
import { setup } from 'xstate';
import { z } from 'zod';

type Model = (id: string) => LanguageModelV4;
export declare const openai: Model;
export declare const anthropic: Model;
export declare const model: LanguageModelV4;
export declare const prompt: string;
export declare const agent: pawl.Agent;
export declare const agents: readonly pawl.Agent[];
export declare const support: pawl.Agent;
export declare const researcher: pawl.Agent;
export declare const refund: pawl.Workflow;
export declare const skills: readonly pawl.Skill[];
export declare const summarise: pawl.Skill;
export declare const searchOrders: pawl.Tool;
export declare const sendMail: pawl.Tool;
export declare const store: pawl.CheckpointStore;

export type Mail = z.ZodType<{ to: string; text: string }>;
export type Refund = { cents: number; orderId: string };
export type Machine = ReturnType<ReturnType<typeof setup>['createMachine']>;
export declare const orderId: string;
export declare const user: { readonly id: string };
export declare const first: pawl.RunResult;
export declare const earlier: pawl.RunResult;
export declare const data: string;
export declare const completedPhases: NonNullable<pawl.ResumeState['completedPhases']>;
export declare const ownCheckpointer: NonNullable<pawl.RunOptions['checkpointer']>;
export declare const stop: AbortController;
export declare const server: { close(): void };
export declare const mailer: { send(mail: { to: string; text: string; key: string }): Promise<string> };
export declare const userOf: (headers: Headers) => Promise<{ readonly grant: Grant } | undefined>;

export declare const events: pawl.RunEvent[];
export declare const recorderOf: (run: pawl.RunInfo) => pawl.AuditRecorder;
export declare const ulid: () => string;
export declare const timed: <Value>(name: string, work: () => Promise<Value>) => Promise<Value>;
export declare const queue: { send(runId: string, options: { readonly startAfter: number }): void };
export declare const pager: { send(page: { readonly key: string; readonly text: string }): void };
export declare const table: { insertOnce(id: string, row: object): Promise<void> };
export declare const createBrowserInspector: () => { readonly inspect: pawl.Inspect };

export const {
  createBudget,
  createCompactor,
  encrypt,
  createCritic,
  createEscalator,
  createPalette,
  jsonLogger,
  rateLimits,
} = pawl;
export const { createCheckpointerFactory } = kit;
export const { openTelemetry } = pawlOtel;
export const { sqliteBudget, sqliteStore } = sqlite;
export const { genaiPrices } = pawlPrices;
export { Client, Pool, setup, z };
export const { testClock } = testing;
