"""Hostile lines for the programs that take a program, a format or a set as text, and for `test` and `rg`.

As in `hostile.py`: those of REFUSED never run, those of CONTAINED and ENDLESS may run and do no harm.
"""

from __future__ import annotations

_AWK = (
    r"""
awk 'BEGIN { system("id") }'
awk 'BEGIN{system ("id")}'
awk "BEGIN { system(\"echo x > pwned\") }"
awk '{ system("rm " $0) }' names.txt
awk 'BEGIN { if (system("test -e /etc/passwd") == 0) print "yes" }'
awk 'BEGIN { "id" | getline x; print x }'
awk 'BEGIN { "id" | getline; print }'
awk 'BEGIN { while (("cat /etc/passwd" | getline l) > 0) print l }'
awk 'BEGIN { while ((getline l < "/etc/passwd") > 0) print l }'
awk 'BEGIN { getline x < "../outside/secret.txt"; print x }'
awk 'BEGIN { getline < "link"; print }'
awk 'BEGIN { f = "/etc/" "passwd"; while ((getline l < f) > 0) print l }'
awk 'BEGIN { if ((getline x < "/etc/shadow") < 0) print "no" }'
awk 'BEGIN { print "x" > "pwned" }'
awk 'BEGIN { print "x" >> "pwned" }'
awk 'BEGIN { print "x" > "/tmp/pwned" }'
awk 'BEGIN { printf "x" > "pwned" }'
awk 'BEGIN { printf("x") > "pwned" }'
awk 'BEGIN { print("x") > "pwned" }'
awk 'BEGIN { print "x" > ("pw" "ned") }'
awk '{ print > FILENAME ".bak" }' README.md
awk '{ print > $1 }' README.md
awk '{ print $0 > "/dev/stderr" }' README.md
awk 'BEGIN { print "x" | "cat > pwned" }'
awk 'BEGIN { print "x" | "sh" }'
awk 'BEGIN { print "id" | "/bin/sh" }'
awk 'BEGIN { printf "id" | "sh"; close("sh") }'
awk 'BEGIN { print "x" |& "cat" }'
awk 'BEGIN { "cat" |& getline x; print x }'
awk 'BEGIN { s = "/inet/tcp/0/127.0.0.1/22"; s |& getline; print }'
awk 'BEGIN{print length /"/ > "pwned" ~ /"/}'
awk 'BEGIN{print length/"/ > "pwned" ~ /"/}'
awk 'BEGIN { print ENVIRON["PATH"] }'
awk 'BEGIN { for (k in ENVIRON) print k, ENVIRON[k] }'
awk 'BEGIN { for (k in PROCINFO) print k, PROCINFO[k] }'
awk 'BEGIN { ARGV[1] = "/etc/passwd"; ARGC = 2 } { print }'
awk 'BEGIN { ARGV[ARGC++] = "../outside/secret.txt" } { print }' README.md
awk 'BEGIN { SYMTAB["ARGC"] = 2 }'
awk 'BEGIN { f = "system"; @f("id") }'
awk '@include "/etc/passwd"'
awk '@load "filefuncs"; BEGIN { chdir("..") }'
awk -f script.sh
awk -f /etc/passwd
awk -fscript.sh README.md
awk -f names.txt README.md
awk --file=names.txt README.md
awk -e 'BEGIN { print 1 }' README.md
awk -E names.txt
awk -i inplace '{ print }' README.md
awk -l filefuncs 'BEGIN { print 1 }'
awk --include=x 'BEGIN {}'
awk --load=x 'BEGIN {}'
awk -W exec=names.txt README.md
awk -Wexec names.txt
awk -W interactive '{ print }' README.md
awk --version
awk --dump-variables=pwned 'BEGIN {}'
awk --profile=pwned 'BEGIN {}'
awk -o/tmp/pwned 'BEGIN {}'
awk -dpwned 'BEGIN {}'
awk '{ print }' /etc/passwd
awk '{ print }' ../outside/secret.txt
awk '{ print }' README.md /etc/passwd
awk '{ print }' -f /etc/passwd
awk '{ print }' -F /etc/passwd
awk -F: '{ print $1 }' /etc/passwd
awk -v x=1 '{ print }' /etc/passwd
awk -v 'ENVIRON=x' '{ print }' README.md
awk -v ARGV=1 '{ print }' README.md
awk -v x '{ print }' README.md
awk -v 1=x '{ print }' README.md
awk 1 /proc/self/environ
awk 1 /dev/stdin
awk 1 /dev/tcp/127.0.0.1/22
awk 'BEGIN { sys\
tem("id") }'
awk 'BEGIN { print 1 \
> "pwned" }'
awk
awk -F
echo 'BEGIN { system("id") }' | xargs -0 awk
echo 'BEGIN { system("id") }' | xargs -d '\n' -I{} awk {}
echo /etc/passwd | xargs awk '{ print }'
find . -name '*.md' -exec awk {} README.md \;
find . -exec awk -f {} \;
find . -exec awk '{ print > FILENAME }' {} +
p='BEGIN { system("id") }'; awk "$p"
a='print "x" > "pwned"'; awk "BEGIN { $a }"
x='"id" | getline'; awk "BEGIN { $x }"
""".strip()
    .replace("\\\n", "\0")
    .splitlines()
)

_JQ = r"""
jq env README.md
jq -n env
jq -n 'env.PATH'
jq -n '$ENV'
jq -n '$ENV.PATH'
jq -n '$__prog_args'
jq -n '"\(env)"'
jq -n '[env]'
jq -n '{a:env}'
jq -n 'env|keys'
jq -n '.|env'
jq -n '$  ENV'
jq -n 'import "a" as a; a::f'
jq -n 'import "../outside/secret" as $s; $s'
jq -n 'import "a" as a {search:"/etc"}; 1'
jq -n 'include "a"; f'
jq -n 'include "a" {search:"./"}; f'
jq -n 'import "/etc/passwd" as $p; $p'
jq -n '"a" | modulemeta'
jq -n 'get_search_list'
jq -f script.sh
jq -f /etc/passwd
jq -fnames.txt
jq -nf names.txt
jq --from-file names.txt
jq --from-file=/etc/passwd
jq -n --rawfile x /etc/passwd '$x'
jq -n --rawfile x link '$x'
jq -n --slurpfile x ../outside/secret.txt '$x'
jq -n --argfile x names.txt '$x'
jq -L . 'import "a" as a; 1' -n
jq -L/etc -n 1
jq -n -L .. 1
jq --library-path . -n 1
jq -n '$x' --args /etc/passwd
jq -n '$ARGS' --args a
jq -n --jsonargs 1 2
jq -n --arg
jq -n --arg x
jq -n --arg 1 x 1
jq -n --argjson x
jq --seq . api/a.json
jq --stream-errors . api/a.json
jq --unbuffered . api/a.json
jq --build-configuration
jq --version
jq -V
jq --help
jq -h
jq --run-tests names.txt
jq --debug-dump-disasm . api/a.json
jq --debug-trace . api/a.json
jq --indent 99 . api/a.json
jq --indent=x . api/a.json
jq . /etc/passwd
jq -R . /etc/passwd
jq -Rs . ../outside/secret.txt
jq -R . api/a.json /etc/passwd
jq -Rr . /proc/self/environ
jq -R . /dev/stdin
jq . /
jq . ..
jq
jq -r
jq -n 'input' /etc/passwd
jq -Rn '[inputs]' ../outside/secret.txt
echo env | xargs jq -n
echo '$ENV' | xargs -I{} jq -n {}
echo /etc/passwd | xargs jq -R .
echo -f names.txt | xargs jq
find . -name '*.json' -exec jq -f {} \;
find . -name '*.json' -exec jq {} api/a.json \;
find . -exec jq --rawfile x {} '$x' \;
k=env; jq -n "$k"
k='$ENV'; jq -n "$k.PATH"
o=-f; jq $o names.txt
""".strip().splitlines()

_SED = r"""
sed 's/x/id/e' README.md
sed 's/x/id/ge' README.md
sed 's/x/y/w pwned' README.md
sed 's/x/y/gw pwned' README.md
sed 's/.*/&/w /dev/stdout' README.md
sed '1e' README.md
sed '1e id' README.md
sed 'e id' README.md
sed 'e' README.md
sed '1!e id' README.md
sed '/foo/e id' README.md
sed '{e id
}' README.md
sed 'p;e id' README.md
sed 'w pwned' README.md
sed '1,$w pwned' README.md
sed '/x/w pwned' README.md
sed '$!{w pwned
}' README.md
sed 'W pwned' README.md
sed 'r /etc/passwd' README.md
sed '1r ../outside/secret.txt' README.md
sed 'R /etc/passwd' README.md
sed '/x/r link' README.md
sed 's/a/b/;r /etc/passwd' README.md
sed 's/a/b/
r /etc/passwd' README.md
sed 's/[/]/x/;w pwned' README.md
sed 's/[/]/e id;s/]/x/' README.md
sed 's,a,b,;1e id' README.md
sed 's/a\/b/c/e' README.md
sed 'y/a/b/e' README.md
sed 'a\' README.md
sed 'a x' README.md
sed 'i\x' README.md
sed 'c\x' README.md
sed 'l 9999999' README.md
sed 'F' README.md
sed 'z' README.md
sed 'v' README.md
sed '#n
1e id' README.md
sed ':a
e id
ba' README.md
sed ':a;e id' README.md
sed '\,x,e id' README.md
sed '\|a\|e id|p' README.md
sed '\ax aw pwned' README.md
sed 'b a;e id;:a' README.md
sed '1{p' README.md
sed 'p}' README.md
sed '1,2' README.md
sed 's/a/b' README.md
sed 's/a' README.md
sed -i s/a/b/ README.md
sed -i.bak s/a/b/ README.md
sed -Ei s/a/b/ README.md
sed --in-place=.bak p README.md
sed --in-pl p README.md
sed -f names.txt README.md
sed -nf names.txt README.md
sed --file=names.txt README.md
sed -e p -f names.txt README.md
sed -e 'e id' README.md
sed -e p -e 'w pwned' README.md
sed --expression='e id' README.md
sed -n --expression 'r /etc/passwd' README.md
sed --follow-symlinks p README.md
sed --posix p README.md
sed --debug p README.md
sed -u p README.md
sed -l 5 p README.md
sed p /etc/passwd
sed p README.md ../outside/secret.txt
sed -n '$p' /etc/passwd
sed p /dev/stdin
sed
sed -n
echo 'e id' | xargs -0 sed
echo /etc/passwd | xargs sed p
find . -exec sed -i p {} +
find . -exec sed {} README.md \;
find . -exec sed 'w pwned' {} \;
s='e id'; sed "1$s" README.md
s='w pwned'; sed -n "$s" README.md
""".strip()

_TEXT_PROGRAMS = r"""
printf -v x %s a
printf -v PATH %s .
printf '%n'
printf '%9999999d' 1
printf '%2147483647s' x
printf '%.9999999f' 1
printf '%.2147483647d' 1
printf '%*d' 999999999 1
printf '%-*s' 99999999 x
printf '%.*f' 99999999 1
printf '%1$s' x
printf '%(%s)T' 1
printf '%(%c)T'
printf '%p' x
printf '%m'
printf '%ls' x
printf '%hhd' 1
printf '%L' 1
printf %
printf '%'
printf '%z' 1
printf --help
printf --version
printf
printf -- %9999999s x
printf '%s%n%9999999d' a b 1
w=99999999; printf "%${w}d" 1
f='%9999999d'; printf $f 1
echo '%9999999d' | xargs -I{} printf {} 1
printf '%s' x > pwned
printf -n x
tr 'a' '[b*99999999999]'
tr 'a-z' '[x*1000000]'
tr '\0-\377' '[a*2147483647]'
tr 'a' '[\*99999]' a
tr a b README.md
tr a b c d
tr
tr --help
tr -x a b
tr -d a b c
tr a b < /etc/passwd
tr a b < ../outside/secret.txt
tr a b < link
tr a b < passwd
cut -f1 /etc/passwd
cut -d: -f1 /etc/passwd
cut -d: -f1 ../outside/secret.txt
cut -c1- link /etc/passwd
cut -b 1-9 README.md /proc/self/environ
cut -f x README.md
cut -f 1 --output README.md
cut --help
cut -f1 --version
cut -w -f1 README.md
cut -f '1 /etc/passwd' README.md
nl /etc/passwd
nl ../outside/secret.txt
nl -w 9999999 README.md
nl -w9999 README.md
nl --number-width=99999999 README.md
nl -b x README.md
nl -n zz README.md
nl --help
nl -v 99999999999999 README.md
nl -x README.md
true --help
false --version
pwd -x
pwd README.md
pwd; cat /etc/passwd
ls | xargs pwd
ls | xargs cd
: $(id)
: > pwned
true > pwned
""".strip().splitlines()

_TEST = r"""
test -e /etc/shadow
test -e /etc/passwd && echo yes
test -f ../outside/secret.txt
test -d /root
test -d ..
test -r /etc/shadow
test -w /etc/passwd
test -x /bin/sh
test -s /etc/passwd
test -L /etc/mtab
test -h /bin
test -S /run/docker.sock
test -p /dev/fd/0
test -b /dev/sda
test -c /dev/null/x
test -O /etc/passwd
test -G /etc/passwd
test -u /usr/bin/sudo
test -k /tmp
test -N /etc/passwd
test ! -e /etc/shadow
test -e README.md -a -e /etc/shadow
test -e /etc/shadow -o -e README.md
test \( -e /etc/shadow \)
test README.md -nt /etc/passwd
test /etc/passwd -ot README.md
test /etc/passwd -ef passwd
test /proc/self/root -ef /
test -e /proc/1
test -d /proc/self/fd
test -e /dev/kvm
test -e /.dockerenv
test -e {out}/secret.txt
test -e docs/../../outside/secret.txt
test -e ./../outside
test -e link
test -f link
test -e passwd
test -r passwd
test -d rootlink
test -e rootlink/etc/shadow
test -e rootlink/root/.ssh/id_rsa
test -f updir/secret.txt
test -e updir
test -L updir/x
test -nt /etc/passwd -e README.md
test -e = /etc/passwd -a x
test -t 0
test -v PATH
test -R x
test -q x
[ -e /etc/shadow ]
[ -e /etc/shadow ] && echo yes
[ -f ../outside/secret.txt ] || echo no
[ -d /root ]; echo $?
[ ! -e /etc/shadow ]
[ -e link ]
[ -e rootlink/etc/shadow ]
[ -e README.md
[ -e README.md -a -f /etc/passwd ]
[[ -e /etc/shadow ]]
[[ -e README.md ]]
test --help
[ --version ]
cd docs && test -e ../../outside/secret.txt
cd docs && [ -e ../../../etc/shadow ]
cd docs && [ -e ../link ]
f=/etc/shadow; [ -e $f ]
f=/etc/shadow; test -e "$f" && echo yes
for f in /etc/shadow /root; do [ -e $f ] && echo $f; done
for f in *; do [ -e "$f" ] && echo $f; done
echo /etc/shadow | xargs test -e
echo link | xargs -I{} test -f {}
printf '%s\n' -e /etc/shadow | xargs test
ls | xargs rg OUTSIDE
jq -n "'$(id)'"
[ "$(" = x ]
find . -exec test -e /etc/shadow \;
o=-e; test $o /etc/shadow
""".strip().splitlines()

_RG = r"""
rg root /etc/passwd
rg x ..
rg -f /etc/passwd x
rg --pre ./script.sh x
rg --pre=./script.sh x
rg --pre-glob '*' --pre sh x
rg -z x
rg --hostname-bin ./script.sh x
rg --hyperlink-format default x
rg --search-zip x
rg -L x
rg --follow x
rg --ignore-file /etc/passwd x
rg --path-separator / x
rg -e root -- /etc/passwd
rg -- root /etc/passwd
rg --files /etc
rg --files ..
rg --files -L
rg -g '../*' x
rg -g '/etc/*' x
rg -g '{a,b}' x
rg --iglob '*/*' x
rg -A 99999999 x
rg -C x x
rg -m -1 x
rg --type-add 'x:*' x
rg --type-list
rg --debug x
rg --trace x
rg --engine pcre2 x
rg -E utf-16 x
rg --dfa-size-limit 1G x
rg --mmap x
rg --passthru x
rg --replace '$0' x
rg --json x
rg --vimgrep x
rg --column x
rg --version
rg --help
rg -h
rg -V
rg
rg -e
rg -A
rg --files x y -n
rg x > pwned
rg x | tee pwned
rg -r x y README.md
cd docs && rg x ../..
echo /etc/passwd | xargs rg root
echo -f names.txt | xargs rg
echo --pre ./script.sh x | xargs rg
egrep -f /etc/passwd x
egrep root /etc/passwd
fgrep -f names.txt README.md
fgrep -rn root /etc
egrep --file=names.txt README.md
fgrep x ../outside/secret.txt
""".strip().splitlines()

_CONTAINED = r"""
awk 'BEGIN { while (1) print "x" }'
awk 'function f(n) { return f(n + 1) } BEGIN { f(1) }'
awk 'BEGIN { printf "%999999999d\n", 1 }'
awk 'BEGIN { printf "%*d\n", 99999999, 1 }'
awk 'BEGIN { x = sprintf("%99999999s", "x"); print length(x) }'
awk 'BEGIN { s = "x"; for (i = 0; i < 40; i++) s = s s; print length(s) }'
awk 'BEGIN { print index("a|b", "|"), "a > b" }'
awk '{ print ($1 > 5), $2 }' README.md
awk '/a|b/ { print }' README.md
awk 'match($0, /(a+)+$/)' README.md
awk '{ gsub(/(x*)*y/, "z"); print }' README.md
awk '1' link passwd updir/secret.txt
awk '1' *
awk '1' ./*
awk 1 x=/etc/passwd README.md
awk -v 'x=/etc/passwd' '{ print x }' README.md
awk -F'\t' '{ print $1 }' link
awk 'BEGIN { print substr("x", -1e300, 1e300) }'
awk 'BEGIN { srand(); print rand() < 2 }'
awk 'BEGIN { print length() }'
awk 'BEGIN { print -1 " " -1 }'
awk 'BEGIN { print 1/0 }'
awk '{'
awk 'BEGIN { exit 112 }'
awk '#'
awk 'BEGIN { printf "%c%c", 27, 7 }'
find . -type f -exec awk 1 {} +
jq -n 'range(1e12)'
jq -n 'def f: [f]; f'
jq -n '[limit(9; repeat(1))]'
jq -n '"aaaaaaaaaaaaaaaaaaaaaaaaaaaa" | test("(a+)+$")'
jq -n 'input'
jq -n '[inputs]' api/a.json api/b.json
jq -R . link passwd updir/secret.txt
jq -Rs . *
jq . rootlink/etc/passwd
jq -n '$__loc__'
jq -n 'input_filename'
jq input_filename api/a.json
jq -n 'debug'
jq -n '"x" | halt_error'
jq -n 'now | type'
jq -n '@sh "rm \("$x")"'
jq -n '.env'
jq -r '.import // .include' api/a.json
jq -n --arg env x '1'
jq -n --arg x '$ENV' '$x'
jq '.a[' api/a.json
jq -n '1e1000000'
jq -n '[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]'
find . -name '*.json' -exec jq -r .name {} +
sed -n '/foo/p' link passwd
sed 'G;G;G;G' docs/numbers.txt
sed ':a;G;h;ba' docs/numbers.txt
sed 's/\(a*\)*b/x/' README.md
sed 's/.*/&&&&&&&&&&&&&&&&/;s/.*/&&&&&&&&&&&&&&&&/;s/.*/&&&&&&&&&&&&&&&&/;s/.*/&&&&&&&&&&&&&&&&/;p;p' docs/numbers.txt
sed -E 's/((a{1,100}){1,100}){1,100}/x/' README.md
sed -n 'p' *
sed -s -n '$p' link rootlink/etc/passwd
sed '' updir/secret.txt
sed 's/e id/w pwned/' README.md
sed 'y/abc/xyz/' passwd
sed --sandbox p README.md
sed -n '\,docs/,p' README.md
sed -n '\|x|,\#y#p' README.md
printf '%s' '%n%n%n'
printf '%b' '\0101\x41\n'
printf '%s\n' /etc/passwd '$(id)' '`id`'
printf '\033]0;x\007'
printf '%d' 99999999999999999999999
printf '%s %s' a b c d e
tr 'a-z' 'A-Z' < README.md
tr -d '\0-\377' < README.md
tr '[a*]' b < README.md
tr a '[b*999]' < README.md
tr 'z-a' b
cut -c1-999999999 README.md
cut -d '' -f1 README.md
cut -f1 link passwd
cut --complement -c 1-3 *
nl link
nl -b 'p\(a*\)*b' README.md
nl -s '$(id)' README.md
test -n /etc/passwd
test /etc/passwd = /etc/shadow
[ a \< /etc ]
test 99999999999999999999 -gt 1
rg -P '(a+)+$'
rg '(a|aa)+$' README.md
rg root
rg -uuu root
rg --hidden OUTSIDE .
rg OUTSIDE link
rg root rootlink
rg root rootlink/etc/passwd
rg --files rootlink
rg --files updir
rg --files --hidden
egrep '(a+)+$' README.md
fgrep OUTSIDE link passwd
true; false; :
pwd
cd docs && pwd
awk ''
tr -d a /etc/passwd
test -o posix
test -e
ls docs | xargs rg OUTSIDE
""".strip().splitlines()


def _split_sed(text: str) -> list[str]:
    """A text goes on below a line whose quote is open."""
    found: list[str] = []
    for line in text.splitlines():
        if found and found[-1].count("'") % 2:
            found[-1] += f"\n{line}"
        else:
            found.append(line)
    return found


REFUSED: tuple[str, ...] = (
    *(line.replace("\0", "\\\n") for line in _AWK),
    *_JQ,
    *_split_sed(_SED),
    *_TEXT_PROGRAMS,
    *_TEST,
    *_RG,
)
CONTAINED: tuple[str, ...] = tuple(_CONTAINED)
ENDLESS = (
    "awk 'BEGIN { while (1) x = x \"a\" }'",
    "awk 'BEGIN { while (1); }'",
    "jq -n '[range(1e9)] | length'",
    "jq -n 'def f: f; f'",
    "sed ':a;ba' README.md",
)
"""Those of the contained that go on until they are stopped."""
