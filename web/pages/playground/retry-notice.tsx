// A failed answer: why it failed, and when and how to retry.
import { Button, Group, Stack, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import type { ApiFailure } from "../../api/client.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { span } from "../../parts/words/figures.ts";

interface RetryNoticeProps {
  failure: ApiFailure;
  /** When the failure arrived, in milliseconds since 1970. */
  failedAtMs: number;
  /** True if part of the answer had arrived. */
  hasBegun: boolean;
  /** Asks again; undefined if a retry is useless, or if another question was asked since. */
  retry: (() => void) | undefined;
}

export function RetryNotice({ failure, failedAtMs, hasBegun, retry }: RetryNoticeProps) {
  const { retryAfterSeconds } = failure;
  const seconds = useSecondsUntil(retryAfterSeconds === null ? 0 : failedAtMs + retryAfterSeconds * 1000);
  return (
    <Stack gap="xs">
      <Failure error={failure} {...(hasBegun ? { title: "The answer was cut off" } : {})} />
      {retry && (
        <Group gap="sm">
          <Button size="xs" variant={seconds > 0 ? "default" : "filled"} onClick={retry}>
            Try again
          </Button>
          {/* Outside the alert, because a screen reader would announce the countdown every second. */}
          {retryAfterSeconds !== null && (
            <Text size="sm" className="numeric">
              {seconds > 0 ? `Try again in ${span(seconds)}.` : "You can try again now."}
            </Text>
          )}
        </Group>
      )}
    </Stack>
  );
}

/** Counts down the whole seconds until `ms`; 0 once that time has passed. */
function useSecondsUntil(ms: number): number {
  const remainingSeconds = () => Math.max(0, Math.ceil((ms - Date.now()) / 1000));
  const [seconds, setSeconds] = useState(remainingSeconds);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `remainingSeconds` is of `ms` alone
  useEffect(() => {
    setSeconds(remainingSeconds());
    if (remainingSeconds() === 0) return;
    const timer = setInterval(() => {
      setSeconds(remainingSeconds());
      if (remainingSeconds() === 0) clearInterval(timer);
    }, 500);
    return () => clearInterval(timer);
  }, [ms]);
  return seconds;
}
