/**
 * What commands write in the folder of a game, which docs/cli.md shows. A test runs them in this order, and compares every
 * line but for ids, numbers and times.
 */
export const CLI_FLOWS = `$ muster init
found    a script (server.ts), site public
Wrote muster.yaml. Next: muster deploy

$ muster deploy
game     tanks is new
build    server.ts, 3.5 kB
site     2 files, 2 new, 0.1 kB
check    a lobby of the version was ready after 0.2 s, and ended again
tanks prod: 0.0.1 → 2026.11.24-1 (0.5 s)
No lobby runs on another version. To undo: muster rollback prod

$ muster deploy --message "better graphics"
build    the same as server.ts 2026-11-24T09:30:12: not sent again
site     2 files, 1 new, 0.1 kB (0.0 kB of it sent now, the rest was there)
check    a lobby of the version was ready after 0.2 s, and ended again
tanks prod: 2026.11.24-1 → better graphics (0.4 s)
No lobby runs on another version. To undo: muster rollback prod

$ muster bots 2 --for 3s
2 bots play "default" in tanks prod for 3s.
seats      4, found in 104 ms (p50), 105 ms (p95)
connected  4

$ muster why 01a20b3a-45e6-72e0-ab57-604aab895c3a
find in 104 ms: a seat in the new lobby d511edc9ad78
asked for     a seat in default at local
passed over   4f16aacf0b2e (default, local, 1 seat taken): it was closed to finds
time          checked 1.2 ms, decided 1.9 ms, seated 6.5 ms, ready 103.1 ms, answered 104 ms

$ muster status
GAME   NAMESPACE  VERSION          PLAYERS  LOBBIES  SERVERS
tanks  prod       better graphics  2        2        2
The version is 9s old.

$ muster lobbies
LOBBY         MODE     PLAYERS  STATE   SERVER        AGE
4f16aacf0b2e  default  1/8      closed  17e0c5a0d7f1  3s
d511edc9ad78  default  1/8      open    604aab895c3a  2s

$ muster logs --grep ready
Server 01a20b3a-45e6-72e0-ab57-604aab895c3a, lobby 01a20b3a-45de-7073-97dd-d511edc9ad78
09:31:02.190   lobby 01a20b3a-45de-7073-97dd-d511edc9ad78 is ready at port 26019

$ muster rollback
tanks prod: better graphics → 2026.11.24-1
On other versions until they end: 2 lobbies, 2 players.
`;

/**
 * What commands that go on write in a terminal, which docs/cli.md shows. A line with # says what happens meanwhile. A test
 * does it, and compares what the terminal shows after it.
 */
export const LIVE_FLOWS = `$ muster login https://play.example.com
Open this link in a browser, check that it shows the code S22R-3K72, and choose a game:

  https://play.example.com/link/01a214f0-6f28-74eb-87ac-77f5a03b6d25

# a person opens the link, sees the same code, and chooses the game
Logged in to https://play.example.com for the game tanks.

$ muster lobbies watch
tanks prod: 0 lobbies, 0 players
# a player finds a seat
tanks prod: 1 lobby, 1 player
LOBBY         MODE     REGION  PLAYERS  STATE  VERSION          SERVER        AGE
d511edc9ad78  default  local   1/8      open   better graphics  604aab895c3a  0s
# ctrl-C

$ muster logs -f
Server 01a20b3a-45e6-72e0-ab57-604aab895c3a, lobby 01a20b3a-45de-7073-97dd-d511edc9ad78
09:31:02.190   lobby 01a20b3a-45de-7073-97dd-d511edc9ad78 is ready at port 26019
# the player connects
09:31:04.811   3f8e21ab has come
# ctrl-C

$ muster dev
game     tanks is new
service       http://127.0.0.1:8080
players       http://tanks.sites.localhost:8080, in two tabs
public token  pub_prod.eyJhbGciOiJFZERTQSJ9
build    server.ts, 3.5 kB
site     1 file, 1 new, 0.1 kB
check    a lobby of the version was ready after 0.2 s, and ended again
09:40:12 The first version: live after 521 ms
r ends all lobbies   b lets two bots play for 30 s   l hides or shows logs   o opens the page   q quits
# a player finds a seat
09:40:31.190 4f16   lobby 01a20b3a-45de-7073-97dd-d511edc9ad78 is ready at port 26019
# the key l
Logs are hidden. Press l to see them.
# server.ts is saved
build    server.ts, 3.5 kB
site     the same as before: not sent again
check    a lobby of the version was ready after 0.2 s, and ended again
09:41:03 server.ts changed: live after 371 ms; of the old version, 1 lobby with players is closed and ends in 2 s
The closed lobby has ended
# the key q
`;
