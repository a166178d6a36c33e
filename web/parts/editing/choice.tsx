// A choice of one among several, whose options are drawn once the keyboard or a pointer has come to it.
import { Select, type SelectProps } from "@mantine/core";
import { useState } from "react";

/** The library draws all options of each as the page comes, hidden, and measures where they would be shown. */
export function Choice({ onFocus, ...select }: SelectProps) {
  const [isNear, setNear] = useState(false);
  return (
    <Select
      {...select}
      comboboxProps={{ keepMounted: isNear }}
      onFocus={(event) => {
        setNear(true);
        onFocus?.(event);
      }}
    />
  );
}
