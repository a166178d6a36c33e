// The parameters of a request as an endpoint reads them (RFC 6749, 3.2).

/** Without those that have no value: they are as if they had been left out. */
export function presentParameters(fields: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  return new Map([...fields].filter(([, value]) => value !== ""));
}
