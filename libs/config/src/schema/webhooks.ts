/** Endpoints that runs may name as the receiver of their end. */
import { isWebhookSecret } from '@treadle/core';
import { z } from 'zod';
import { httpAddress, httpHeaders } from './addresses.ts';

const secret = z.string().refine(isWebhookSecret, 'expected whsec_ and base64 of 24 to 64 bytes');

export const webhookEndpointSchema = z.strictObject({
  url: httpAddress.refine((url) => url.length <= 2048, 'expected at most 2048 characters'),
  /** Signs what is sent there; `"env:NAME"`. */
  secret,
  /** While receivers change over: what is sent is signed with both. */
  previous_secret: secret.optional(),
  /** Sent along. */
  headers: httpHeaders.default({}),
});
