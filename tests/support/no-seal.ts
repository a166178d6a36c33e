// A seal for tests in which nothing is sealed that a client would bring back.
import type { AccountSeal } from "../../src/domain/seal.ts";

export const noSeal: AccountSeal = {
  seal: () => "sealed",
  open: () => undefined,
  pseudonym: (use, value) => `pseudonym of ${use} ${value}`,
};
