// The dialog that replaces a secret by a new one; the old one stays valid for some time.
import { NativeSelect, Text } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import { Form } from "../editing/form.tsx";
import { MakingDialog } from "./making-dialog.tsx";

interface RotationProps<Rotated> {
  opened: boolean;
  close(): void;
  /** The word for the secret in texts for users. */
  what: "key" | "secret";
  /** The API path of the secret's owner, and the path segment that rotates it. */
  path: string;
  action: string;
  title: string;
  titleOf(rotated: Rotated): string;
  /** The consequences of the rotation. */
  about: ReactNode;
  /** A sentence about why the old secret stays valid for some time. */
  hint: string;
  isWide?: boolean;
  done?: () => void;
  /** Renders the new secret. `overlap` is the number of seconds for which the old one stays valid. */
  children(rotated: Rotated, leave: () => void, overlap: number): ReactNode;
}

const overlaps = [
  { value: "0", label: "not at all" },
  { value: "3600", label: "for 1 hour" },
  { value: "86400", label: "for 24 hours" },
  { value: "604800", label: "for 7 days" },
  { value: "2592000", label: "for 30 days" },
];

export function Rotation<Rotated>(props: RotationProps<Rotated>) {
  const { what, path, action, about, hint, done, children, ...dialog } = props;
  const [overlap, setOverlap] = useState("86400");
  const body = { overlap_seconds: Number(overlap) };
  const rotation = useChange(() => call<Rotated>("POST", `${path}/${action}`, { body }), {
    stale: [path],
    ...(done ? { done } : {}),
  });
  return (
    <MakingDialog
      {...dialog}
      making={rotation}
      form={(leave) => (
        <Form
          sending={rotation}
          action={`Rotate the ${what}`}
          submit={() => rotation.mutate(undefined)}
          cancel={leave}
          isHeld
        >
          <Text size="sm">{about}</Text>
          <NativeSelect
            label={`Keep the old ${what} working`}
            description={hint}
            value={overlap}
            onChange={(event) => setOverlap(event.currentTarget.value)}
            data={overlaps}
            data-autofocus
          />
        </Form>
      )}
    >
      {(rotated, leave) => children(rotated, leave, Number(overlap))}
    </MakingDialog>
  );
}
