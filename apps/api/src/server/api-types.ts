/** How routes get their types from their schemas: what comes in is checked and typed; what goes out is ours. */
import type { FastifyBaseLogger, FastifyInstance, FastifyTypeProvider, RawServerDefault } from 'fastify';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import { invalidRequest, problemTitles, type ProblemCode } from '../problem.ts';
import { fieldProblems } from './field-problems.ts';

export interface ZodTypes extends FastifyTypeProvider {
  readonly validator: this['schema'] extends z.ZodType ? z.output<this['schema']> : unknown;
  readonly serializer: unknown;
}

export type ApiInstance = FastifyInstance<RawServerDefault, IncomingMessage, ServerResponse, FastifyBaseLogger, ZodTypes>;

/** Schemas check requests; answers are written as they are, and tests hold them against their schemas. */
export function useZod(app: FastifyInstance): void {
  app.setValidatorCompiler<z.ZodType>(({ schema }) => (data: unknown) => {
    const result = schema.safeParse(data);
    return result.success ? { value: result.data } : { error: invalidRequest(fieldProblems(result.error.issues)) };
  });
  app.setSerializerCompiler(() => (data: unknown) => JSON.stringify(data));
}

const problemSchema = z.strictObject({
  type: z.string(), title: z.string(), status: z.int(), detail: z.string(), code: z.enum(Object.keys(problemTitles) as [ProblemCode, ...ProblemCode[]]).describe('Stable.'),
  errors: z.array(z.strictObject({ path: z.string(), problem: z.string() })).optional(),
}).describe('RFC 9457');

const meanings: Record<number, string> = {
  400: 'Not JSON, or a position that the log does not have', 401: 'No valid API key', 403: 'The key lacks a scope', 404: 'Not here, or not yours',
  409: 'In conflict with what is there', 410: 'The run was deleted', 413: 'Too large', 415: 'Not JSON', 422: 'Not valid, or not supported yet', 429: 'Too many',
  500: 'A fault of ours', 503: 'Something that is needed is away',
};

/** Problem answers for the OpenAPI file: those named, and those that every route may give. */
export function problems(...statuses: number[]) {
  return Object.fromEntries([...statuses, 401, 403, 500, 503].map((status) => [status, {
    description: meanings[status] ?? 'Problem', content: { 'application/problem+json': { schema: problemSchema } },
  }]));
}

/** An answer in JSON, described. */
export function json(description: string, schema: z.ZodType) {
  return { description, content: { 'application/json': { schema } } };
}

/** A page of a list. */
export function pageOf(item: z.ZodType) {
  return z.strictObject({ data: z.array(item), next_cursor: z.string().nullable() });
}

/** A whole number in a query string; the OpenAPI file calls it what it is. */
export function queryInt(lowest: number, highest: number) {
  return z.string().regex(/^\d{1,12}$/, 'expected a whole number').meta({ type: 'integer', pattern: undefined, minimum: lowest, maximum: highest })
    .transform(Number).pipe(z.int().min(lowest).max(highest));
}

/** Whoever says something in the query of a route that looks at none of it is told so: what is ignored there looks as if it had been done. */
export function refuseUnknownQueries(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    if (route.url.startsWith('/v1/') && route.schema?.hide !== true) route.schema = { querystring: z.strictObject({}), ...route.schema };
  });
}

/** For commands without fields: no body, or an empty object. */
export async function takesNoFields(request: { readonly body: unknown }): Promise<void> {
  const result = z.strictObject({}).nullish().safeParse(request.body);
  if (!result.success) throw invalidRequest(fieldProblems(result.error.issues));
}

/** Most of a list's items on one page. */
export const pageLimit = queryInt(1, 200);

export function encodeCursor(position: string): string {
  return Buffer.from(position).toString('base64url');
}

/** Null for what was never a cursor of ours. */
export function decodeCursor(cursor: string): string | null {
  const position = Buffer.from(cursor, 'base64url').toString();
  return encodeCursor(position) === cursor ? position : null;
}
