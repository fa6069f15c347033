import type { IncomingMessage } from 'node:http';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';

type SentValue = { readonly stringValue?: string; readonly boolValue?: boolean; readonly intValue?: number };
type SentAttributes = readonly { readonly key: string; readonly value: SentValue }[];

/** A span as OTLP/JSON has it. */
interface SentSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes?: SentAttributes;
  readonly links?: readonly {
    readonly traceId: string;
    readonly spanId: string;
    readonly attributes?: SentAttributes;
  }[];
  readonly status?: { readonly code?: number; readonly message?: string };
}

/** Reads a request of an exporter that sends OTLP/JSON. */
export async function readSpans(request: IncomingMessage): Promise<ReadableSpan[]> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const { resourceSpans = [] } = JSON.parse(Buffer.concat(chunks).toString()) as {
    resourceSpans?: { scopeSpans: { spans: SentSpan[] }[] }[];
  };
  return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans.map(asRead)));
}

/** A span that came, as the checker reads spans. */
function asRead({ traceId, spanId, parentSpanId, ...sent }: SentSpan): ReadableSpan {
  const contextOf = (id: string) => ({ traceId, spanId: id, traceFlags: 1 });
  const read = {
    name: sent.name,
    spanContext: () => contextOf(spanId),
    parentSpanContext: parentSpanId ? contextOf(parentSpanId) : undefined,
    startTime: timeOf(sent.startTimeUnixNano),
    endTime: timeOf(sent.endTimeUnixNano),
    attributes: attributesOf(sent.attributes),
    links: (sent.links ?? []).map(({ attributes, ...link }) => ({
      context: { ...contextOf(link.spanId), traceId: link.traceId },
      attributes: attributesOf(attributes),
    })),
    status: { code: 0, ...sent.status },
  };
  return read as unknown as ReadableSpan;
}

const timeOf = (nanos: string): [number, number] => [
  Number(BigInt(nanos) / 1_000_000_000n),
  Number(BigInt(nanos) % 1_000_000_000n),
];

const attributesOf = (attributes: SentAttributes = []) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
