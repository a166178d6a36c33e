// Formats of numbers and times are made when they are first used: for each a browser takes longer than for a row of a table.

export function whenUsed<Format>(make: () => Format): () => Format {
  let made: Format | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

export function numberFormat(options: Intl.NumberFormatOptions): () => Intl.NumberFormat {
  return whenUsed(() => new Intl.NumberFormat("en", options));
}

/** Dates and times as the reader's browser writes them. */
export function timeFormat(options: Intl.DateTimeFormatOptions): () => Intl.DateTimeFormat {
  return whenUsed(() => new Intl.DateTimeFormat(undefined, options));
}
