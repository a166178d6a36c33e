// Shows what remains of a rate limit.
import { z } from "zod";
import { formatCount, formatSpan } from "../terminal/figures.ts";

export const rate = z.object({ limit: z.number(), remaining: z.number(), reset_seconds: z.number() }).nullish();

export function rateText(state: z.infer<typeof rate>): string {
  if (!state) return "unlimited";
  const whole = state.reset_seconds > 0 ? `, full again in ${formatSpan(Math.ceil(state.reset_seconds))}` : "";
  return `${formatCount(state.remaining)} of ${formatCount(state.limit)} left${whole}`;
}
