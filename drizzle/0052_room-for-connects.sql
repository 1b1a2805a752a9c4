-- Room for one more version of each row on its page: with less, a third of the connects wrote new entries to three indexes.
ALTER TABLE "players" SET (fillfactor = 50);
