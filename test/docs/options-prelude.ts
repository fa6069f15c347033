// What the examples of docs/options.md name: they are compiled below this text.
import type { LanguageModelV4 } from '@ai-sdk/provider';
import * as pawl from 'pawl';
import * as pawlOtel from 'pawl/otel';
import * as kit from 'pawl/stores/kit';
import * as sqlite from 'pawl/stores/sqlite';
import * as testing from 'pawl/testing';

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

export declare const events: pawl.RunEvent[];
export declare const recorderOf: (run: pawl.RunInfo) => pawl.AuditRecorder;
export declare const ulid: () => string;
export declare const timed: <Value>(name: string, work: () => Promise<Value>) => Promise<Value>;
export declare const queue: { send(runId: string, options: { readonly startAfter: number }): void };
export declare const pager: { send(page: { readonly key: string; readonly text: string }): void };
export declare const table: { insertOnce(id: string, row: object): Promise<void> };
export declare const createBrowserInspector: () => { readonly inspect: pawl.Inspect };

export const { createBudget, createCompactor, createCritic, createEscalator, createPalette, jsonLogger, rateLimits } =
  pawl;
export const { createCheckpointerFactory } = kit;
export const { openTelemetry } = pawlOtel;
export const { sqliteStore } = sqlite;
export const { testClock } = testing;
