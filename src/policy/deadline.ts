// Stops waiting for a promise after a time.

/** Settles like the promise, but rejects after `deadlineMs`; a later result is ignored. */
export async function withDeadline<Value>(promise: Promise<Value>, deadlineMs: number): Promise<Value> {
  const { promise: expiry, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer within ${deadlineMs} ms`)), deadlineMs);
  try {
    return await Promise.race([promise, expiry]);
  } finally {
    clearTimeout(timer);
  }
}
