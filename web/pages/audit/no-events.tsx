// Where no event is listed: none is as the filters say, none is yet, or none was found in what was looked through so far.
import { Button } from "@mantine/core";
import { Empty } from "../../parts/page/empty.tsx";

interface NoEventsProps {
  isPaused: boolean;
  goOn(): void;
  /** Undefined: nothing is left out by filters. */
  showAll: (() => void) | undefined;
}

export function NoEvents({ isPaused, goOn, showAll }: NoEventsProps) {
  if (isPaused) {
    return (
      <Empty title="Nothing found yet" action={<Button onClick={goOn}>Search further back</Button>}>
        Many events were looked through. There are older ones.
      </Empty>
    );
  }
  if (showAll) {
    return (
      <Empty
        title="No such event"
        action={
          <Button variant="default" onClick={showAll}>
            Show all events
          </Button>
        }
      >
        Nothing that is kept is as the filters say. Of what takes the whole id.
      </Empty>
    );
  }
  return (
    <Empty title="Nothing has happened yet">Changes of keys, members and apps appear here as they are made.</Empty>
  );
}
