// Creates formatters of numbers and times on first use, because creating one takes a browser longer than rendering a
// table row.

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

/** Formats dates and times by the browser's locale. */
export function timeFormat(options: Intl.DateTimeFormatOptions): () => Intl.DateTimeFormat {
  return whenUsed(() => new Intl.DateTimeFormat(undefined, options));
}
