/** Gives each item of a list its place: the key of an item that has no other. */
export function placed<Item>(items: readonly Item[]): readonly { readonly place: number; readonly item: Item }[] {
  return items.map((item, place) => ({ place, item }));
}
