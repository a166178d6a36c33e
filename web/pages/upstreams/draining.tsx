// Lets a model server finish what it has, and gives it nothing new; or gives it requests again.
import { Button, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { DownloadIcon, PlayIcon } from "@primer/octicons-react";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import type { Upstream } from "../../api/types.ts";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { count } from "../../parts/words/figures.ts";

export function Draining({ upstream: { name, state, running } }: { upstream: Upstream }) {
  const [asking, { open, close }] = useDisclosure();
  const isDraining = state === "draining";
  const change = useChange(
    (draining: boolean) =>
      call<Upstream>("PATCH", `/v1/admin/upstreams/${encodeURIComponent(name)}`, { body: { draining } }),
    {
      stale: ["/v1/admin/upstreams", "/v1/admin/models", "/v1/model-status", "/v1/models"],
      done(changed) {
        close();
        const isNow = changed.state === "draining" ? "gets no new requests" : "gets requests again";
        notifications.show({ message: `${name} ${isNow}.` });
      },
    },
  );
  if (isDraining) {
    return (
      <>
        <Button leftSection={<PlayIcon />} loading={change.isPending} onClick={() => change.mutate(false)}>
          Send requests again
        </Button>
        {change.error && <Failure error={change.error} />}
      </>
    );
  }
  return (
    <>
      <Button
        variant="default"
        leftSection={<DownloadIcon />}
        onClick={() => {
          change.reset();
          open();
        }}
      >
        Drain
      </Button>
      <Confirm
        opened={asking}
        title={`Drain ${name}?`}
        action="Drain it"
        stay="Leave it as it is"
        final={false}
        busy={change.isPending}
        error={change.error}
        confirm={() => change.mutate(true)}
        close={close}
      >
        It finishes {running === 0 ? "what it may have begun by then" : `the ${count(running)} that run on it`} and gets
        nothing new, so that you can update or stop it.
        <Text size="sm" mt="xs">
          Requests for its models go to other upstreams that have them. Where there is none, they get an error with
          status 503. It stays drained over a restart, until you send requests to it again.
        </Text>
      </Confirm>
    </>
  );
}
