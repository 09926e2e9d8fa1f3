/** The engine's port of tracing on OpenTelemetry's API: explicit parents, and nothing that is global to the process. */
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, type Context, type Link, type SpanContext, type Tracer as OtelTracer } from '@opentelemetry/api';
import { readTraceparent } from '@treadle/core';
import { noSpan, type Span, type SpanEnd, type Traced, type Tracer } from '@treadle/engine';
import { beginningOf, carrierAttributes, endingOf, saidAtBeginning, saidAtEnd, type Attributes } from './attributes.ts';
import type { Mask } from './content.ts';
import { errorType } from './names.ts';

export interface TracerOptions {
  /** Takes known secrets out of whatever a span says. */
  readonly mask: Mask;
  /** Whether what people, models and tools said is kept. */
  readonly capture: boolean;
}

/** Characters of a value that is not captured content, which has bounds of its own. */
const longestValue = 512;

export function createTracer(otel: OtelTracer, { mask, capture }: TracerOptions): Tracer {
  const bounded = (text: string): string => mask(text).slice(0, longestValue).toWellFormed();

  function begin(what: Traced, parent: Context, links: Link[]): Span {
    const { name, kind, attributes } = beginningOf(what);
    const span = otel.startSpan(bounded(name), { kind: kind === 'client' ? SpanKind.CLIENT : SpanKind.INTERNAL, attributes: plain(attributes, bounded), links }, parent);
    const context = trace.setSpan(parent, span);
    const told = capture && span.isRecording();
    if (told) span.setAttributes(plain(saidAtBeginning(what, mask)));
    const finish = (how: SpanEnd): void => {
      const { attributes: ending, error } = endingOf(how);
      span.setAttributes(plain({ ...ending, [errorType]: error ?? undefined }, bounded));
      if (told) span.setAttributes(plain(saidAtEnd(how, mask)));
      if (error !== null) span.setStatus({ code: SpanStatusCode.ERROR });
    };
    let ended = false;
    return {
      traceparent: traceparentOf(span.spanContext()),
      begin: (part) => harmless(() => begin(part, context, []), noSpan),
      carriedBy: (carrier) => { harmless(() => { span.setAttributes(plain(carrierAttributes(carrier), bounded)); }, undefined); },
      end: (how) => {
        if (ended) return;
        ended = true;
        harmless(() => { finish(how); }, undefined);
        span.end();
      },
    };
  }

  return {
    begin: (what, { parent, link = null }) => harmless(() => {
      const above = contextOf(parent);
      const linked = contextOf(link);
      return begin(what, above === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, above), linked === null ? [] : [{ context: linked }]);
    }, noSpan),
  };
}

/** X1: a span that cannot be made is none. */
function harmless<T>(act: () => T, otherwise: T): T {
  try {
    return act();
  } catch {
    return otherwise;
  }
}

function plain(attributes: Attributes, bounded: (text: string) => string = (text) => text): Record<string, string | number | boolean | string[]> {
  return Object.fromEntries(Object.entries(attributes).flatMap(([name, value]) => {
    if (value === undefined) return [];
    return [[name, typeof value === 'string' ? bounded(value) : typeof value === 'object' ? value.map(bounded) : value]];
  }));
}

function contextOf(traceparent: string | null): SpanContext | null {
  const read = readTraceparent(traceparent);
  if (read === null) return null;
  const [, traceId = '', spanId = '', flags = ''] = read.split('-');
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}

function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string | null {
  return readTraceparent(`00-${traceId}-${spanId}-0${traceFlags & 1}`);
}
