// Lets a report wait until requests that just ended are in the database, but not for a slow database.

const maxMs = 1_000;

/**
 * Resolves to whether everything that was settled before is written. Also false if writing fails: the stored data is
 * still worth showing.
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
