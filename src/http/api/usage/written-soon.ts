// Waits briefly until requests that have just ended are in the database.

const maxMs = 1_000;

/**
 * Resolves to true once everything recorded so far is in the database. Resolves to false after `maxMs`, or if writing
 * fails.
 */
export async function writtenSoon(writer: { flush(): Promise<void> }): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const deadline = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), maxMs);
  });
  const flushed = writer.flush().then(
    () => true,
    () => false,
  );
  const isWritten = await Promise.race([flushed, deadline]);
  clearTimeout(timer);
  return isWritten;
}
