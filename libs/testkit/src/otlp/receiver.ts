/** A collector for tests: takes traces over OTLP/HTTP, reads those that come as JSON, and keeps every body as it came. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

type Value = { readonly stringValue?: string; readonly intValue?: number | string; readonly doubleValue?: number; readonly boolValue?: boolean; readonly arrayValue?: { readonly values: readonly Value[] } };
interface Attribute { readonly key: string; readonly value: Value }
interface WireSpan {
  readonly traceId: string; readonly spanId: string; readonly parentSpanId?: string; readonly name: string; readonly kind: number; readonly attributes: readonly Attribute[];
  readonly status: { readonly code: number; readonly message?: string }; readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
}

export interface ReceivedSpan {
  readonly trace_id: string;
  readonly span_id: string;
  /** Empty for the first of a trace. */
  readonly parent_id: string;
  readonly name: string;
  readonly kind: 'internal' | 'client' | 'other';
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly failed: boolean;
  readonly links: readonly { readonly trace_id: string; readonly span_id: string }[];
  /** Of the process. */
  readonly resource: Readonly<Record<string, unknown>>;
}

export interface OtlpReceiver {
  readonly url: string;
  /** In the order in which they came. */
  readonly spans: readonly ReceivedSpan[];
  /** Bodies as text, byte by byte, and the heads they came with. */
  readonly bodies: readonly string[];
  readonly headers: readonly IncomingHttpHeaders[];
  close(): Promise<void>;
}

export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const bodies: string[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      bodies.push(body.toString('latin1'));
      headers.push(request.headers);
      const json = request.headers['content-type'] === 'application/json';
      if (json) spans.push(...spansIn(body.toString()));
      response.writeHead(request.url === '/v1/traces' ? 200 : 404, { 'content-type': json ? 'application/json' : 'application/x-protobuf' }).end(json ? '{}' : '');
    });
  });
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans, bodies, headers,
    close: () => new Promise((resolve) => {
      server.close(() => { resolve(); });
      server.closeAllConnections();
    }),
  };
}

function spansIn(text: string): ReceivedSpan[] {
  const { resourceSpans } = JSON.parse(text) as { readonly resourceSpans: readonly { readonly resource: { readonly attributes: readonly Attribute[] }; readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[] }[] };
  return resourceSpans.flatMap(({ resource, scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans.map((span): ReceivedSpan => ({
    trace_id: span.traceId, span_id: span.spanId, parent_id: span.parentSpanId ?? '', name: span.name, kind: kinds[span.kind] ?? 'other', attributes: record(span.attributes),
    failed: span.status.code === 2, links: (span.links ?? []).map((link) => ({ trace_id: link.traceId, span_id: link.spanId })), resource: record(resource.attributes),
  }))));
}

const kinds: Readonly<Record<number, ReceivedSpan['kind']>> = { 1: 'internal', 3: 'client' };

function record(attributes: readonly Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, plain(value)]));
}

function plain(value: Value): unknown {
  if (value.arrayValue !== undefined) return value.arrayValue.values.map(plain);
  return value.stringValue ?? value.boolValue ?? value.doubleValue ?? (value.intValue === undefined ? null : Number(value.intValue));
}
