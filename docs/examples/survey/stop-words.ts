/** Words of four letters and more that say little about a text, in English and in source code. */
export const stopWords: ReadonlySet<string> = new Set(
  `about above after again against also although always among another around async await back because been before being
  below between both boolean break cannot case class const continue could default does doing done down each either else
  enough even ever every export extends false first following from function given goes have having here however import
  instead interface into itself just know last later least less like made make makes many might more most much must need
  needs never none nothing null number object often once only other others otherwise over private public readonly return
  returns same self several shall should since some static still string such switch take takes than that their them then
  there these they thing things this those though through throw thus true type typeof under undefined unless until upon
  used uses using value very void want well were what when where whether which while whose will with within without word
  would your yours true`.split(/\s+/),
);
