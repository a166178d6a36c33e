// Keeps the state of a page in its address, so that a link or a reload shows the same.
import { useCallback, useMemo } from "react";
import { useSearchParams } from "wouter";

/**
 * Reads the parameters `defaults` from the page's address. A value that equals its default is left out of the address.
 * A change replaces the history entry.
 */
export function useAddress<Name extends string>(defaults: Readonly<Record<Name, string>>) {
  const [parameters, setParameters] = useSearchParams();
  const text = parameters.toString();
  // biome-ignore lint/correctness/useExhaustiveDependencies: `text` holds all parameters; the defaults are constants
  const values = useMemo(() => {
    const found: Record<string, string> = {};
    for (const name of Object.keys(defaults)) found[name] = parameters.get(name) ?? defaults[name as Name];
    return found as Record<Name, string>;
  }, [text]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the defaults are constants
  const change = useCallback(
    (changes: Partial<Record<Name, string>>) =>
      setParameters(
        (before) => {
          const next = new URLSearchParams(before);
          for (const [name, value] of Object.entries<string | undefined>(changes)) {
            if (value === undefined || value === defaults[name as Name]) next.delete(name);
            else next.set(name, value);
          }
          return next;
        },
        { replace: true },
      ),
    [setParameters],
  );
  return [values, change] as const;
}

/** Returns the address's value if it is one of these, else the first. */
export function oneOf<const Value extends string>(values: readonly [Value, ...Value[]], said: string): Value {
  return values.find((value) => value === said) ?? values[0];
}
