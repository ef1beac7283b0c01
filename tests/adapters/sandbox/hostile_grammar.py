r"""Hostile texts for the grammar: loops, variables, `cd`, redirects, braces, `$'...'`, comments and lines.

As in `hostile.py`: those of REFUSED never run, those of CONTAINED may run and do no harm. In a text, `\n` within angle
quotes (`«\n»`) is the end of a line.
"""

from __future__ import annotations

from collections.abc import Sequence

_LOOPS = r"""
for f in *; do id; done
for f in *; do rm "$f"; done
for f in *; do $f; done
for f in id; do $f; done
for f in id sh; do "$f" -c x; done
for f in ./script.sh; do $f; done
for f in *.sh; do ./$f; done
for f in *; do cat /etc/passwd; done
for f in /etc/passwd; do cat $f; done
for f in /etc/pass*; do cat "$f"; done
for f in ../outside/*; do cat $f; done
for f in ..; do cat $f/outside/secret.txt; done
for f in passwd shadow; do cat /etc/$f; done
for f in a; do cat ../outside/secret.txt; done
for f in $(ls); do cat $f; done
for f in `ls`; do cat $f; done
for f in a; do echo $(id); done
for f in a; do id; done | cat
for f in a; do cat /etc/passwd; done | grep root
ls | for f in a; do id; done
echo x | for f in a; do cat /etc/passwd; done | wc
for f in a; do echo x > pwned; done
for f in a; do echo x; done > pwned
for f in a; do echo x; done >> pwned
for f in a; do echo x; done 2> pwned
for f in a; do echo x; done | tee pwned
for f in a; do cat; done < /etc/passwd
for f in a; do cat; done < README.md
for f in a b; do sort -o $f README.md; done
for o in -o; do sort $o pwned README.md; done
for o in '-o pwned'; do sort $o README.md; done
for o in -f; do grep $o names.txt README.md; done
for o in -delete; do find . $o; done
for o in '-exec rm {} ;'; do find . $o; done
for p in 'system("id")'; do awk "BEGIN { $p }"; done
for p in env; do jq -n "$p"; done
for i in {1..1001}; do echo $i; done
for i in {1..9999999}; do echo $i; done
for i in {1..100}; do for j in {1..100}; do echo $i$j; done; done
for i in {1..32}; do for j in {1..32}; do true; done; done
for i in {1..11}; do for j in {1..11}; do for k in {1..11}; do x=$i; done; done; done
for a in 1; do for b in 1; do for c in 1; do for d in 1; do ls; done; done; done; done
for i in {1..600}; do ls; ls; done
for i in {1..500}; do true; true; true; done
for i in {1..50}; do x=$x$x$x$x; x=y$x$x; done
x=aaaaaaaaaa; for i in {1..30}; do x=$x$x; done; echo $x
for i in 1 2; do x=../$x; cat ${x}outside/secret.txt; done
for i in 1 2 3; do cd ..; done
for d in .. ../..; do cd $d; done
for d in updir rootlink; do cd $d && ls; done
for ((;;)); do id; done
for ((i=0;i<9;i++)); do echo $i; done
for f; do id; done
for f do id; done
for f in a; { id; }
for f in a; do id; done &
for f in a; do id & done
for f in a; do sleep 99; done
for f in a; do exec id; done
for f in a; do eval id; done
for f in a; do source script.sh; done
for PATH in .; do id; done
for IFS in /; do echo a/b; done
for LD_PRELOAD in ./x.so; do ls; done
for f in a; do id
for f in a; id; done
for f in a do id; done
for in a; do ls; done
for f in a; do; done
for f in a; do done
for 1 in a; do ls; done
for f in a; do ls; done done
for f in a; do ls; done x
for f in a; do break 2; done
for f in a; do break; id; done
for f in a; do continue; cat /etc/passwd; done
for f in a; do break | cat; done
for f in a; do true && break && id; done
for f in a; do while true; do ls; done; done
for f in a; do if true; then ls; fi; done
for f in a; do f() { ls; }; done
for f in a; do (id); done
for f in a; do { id; }; done
while true; do ls; done
while :; do :; done
until false; do ls; done
break
continue
done
do
""".strip().splitlines()

_VARIABLES = r"""
x=id; $x
x=id; "$x"
x='rm README.md'; $x
x=sh; $x -c id
x=./script.sh; $x
x='ls; id'; eval $x
x=/etc/passwd; cat $x
x=/etc/passwd; cat "$x"
x=/etc; cat $x/passwd
x=passwd; cat /etc/$x
x=..; cat $x/outside/secret.txt
x=../; cat ${x}outside/secret.txt
x=.; y=.; cat $x$y/outside/secret.txt
x=/; cat ${x}etc${x}passwd
x='/etc/passwd README.md'; cat $x
x='README.md /etc/passwd'; cat $x
x='/etc/pass*'; cat $x
x='*'; cat /etc/$x
x=docs/../../outside/secret.txt; cat ${x#docs/}
x=a/etc/passwd; cat ${x#a}
x=/etc/passwd.md; cat ${x%.md}
x=../outside/secret.txt.md; cat ${x%%.md}
x='-o pwned'; sort $x README.md
x=-opwned; sort "$x" README.md
x='-f names.txt'; grep $x README.md
x=-delete; find . $x
x='-fprint pwned'; find . $x
x='-exec rm {} ;'; find . $x
x='{} ;'; find . -exec rm $x
x=rm; ls | xargs $x
x='sh -c id'; ls | xargs $x
x='> pwned'; echo a $x; cat /etc/passwd
x='1w pwned'; sed -n "$x" README.md
x='e id'; sed "$x" README.md
x=pwned; echo a > $x
x=pwned; echo a >$x
x=/dev/null; echo a > $x
x=/dev/null; ls 2> "$x"
x=2; ls $x>pwned
x=$(id)
x=`id`
x=$((1+1))
x=(a b)
x[0]=1
x+=1
x=1 id
x=1 ls
x=1 y=2 ls
x=1 2>/dev/null
x=1 > pwned
x=1 | cat
ls | x=1
x=1 & ls
PATH=.
PATH=.; ls
IFS=/
LD_PRELOAD=./x.so
LD_LIBRARY_PATH=.; ls
LC_ALL=x; ls
LANG=x
HOME=/etc; cat ~/passwd
BASH_ENV=script.sh
ENV=script.sh
GLOBIGNORE=x
SHELLOPTS=x
PS4=x
OPTIND=1
CDPATH=/etc; cd ssl
TZ=x; ls
_=x; ls
'x'=1
"x=1"
x\=1
readonly x=1
export x=1
declare x=1
local x=1
typeset x
let x=1
unset x
mapfile x
set -- a
echo $x
echo "$x"
echo ${x}
echo $1
echo $#
echo $*
echo "$@"
echo $RANDOM
echo $SECONDS
echo $PWD
echo $OLDPWD
echo $UID
echo $HOSTNAME
echo ${x:-y}
x=a; echo ${x:-$(id)}
x=a; echo ${x:=y}
x=a; echo ${x:?y}
x=a; echo ${x:+y}
x=a; echo ${x:0:1}
x=a; echo ${x/a/b}
x=a; echo ${x//a/b}
x=a; echo ${x^^}
x=a; echo ${x@P}
x='$(id)'; echo ${x@P}
x=a; echo ${!x}
x=PATH; echo ${!x}
x=a; echo ${x[0]}
x=a; echo ${x%$x}
x=a; echo ${x%"a"}
x=a; echo ${x%`id`}
x=a; echo ${#x[@]}
x=a; echo ${ id; }
x=a; echo ${
x=a; echo ${x
x=a; echo ${x%
x=a; echo $x{b,c}
x=a; echo {$x,$x}b
y='cat /etc/passwd'; x=$y; $x
x='a\*'; echo $x
x=; $x
x=; "$x"
x=; $x id
""".strip().splitlines()

_FOLDERS = r"""
cd /
cd /etc
cd ..
cd ../outside && cat secret.txt
cd docs && cd ../.. && ls
cd docs; cd ..; cd ..
cd docs; cat ../../outside/secret.txt
cd docs; cd 'sub dir'; cat ../../../outside/secret.txt
cd docs && cd .. && cat ../outside/secret.txt
cd docs && cd .. ; cd docs/.. && cd ..
cd docs/../..
cd ./..
cd docs/./../..
cd -
cd
cd ~
cd $HOME
cd $OLDPWD
cd $(ls)
cd `ls`
cd docs api
cd --
cd -- docs
cd -P docs
cd -L docs
cd -e docs
cd -@ docs
cd ''
cd updir
cd updir && cat secret.txt
cd rootlink
cd rootlink/proc/self && cat environ
cd link/..
cd link
cd docs//sub*
cd docs && cd ../updir
cd docs && cd ../rootlink/etc
cd */../.. && ls
cd up* && ls
cd [u]pdir
cd {docs,api}
ls | cd docs
ls | xargs -I{} cd {}
cd docs && find .. -name x -delete
cd docs && find ../.. -name secret.txt
cd docs && ls ../..
cd docs && ls > pwned
cd docs && echo x > ../pwned
cd docs && test -e ../../outside
cd docs && sort -o ../pwned guide.md
cd docs && ../script.sh
cd docs && ./../script.sh
cd . && ./script.sh
cd docs & ls
d=..; cd $d
d=/etc; cd "$d"
d=docs/..; cd $d/..
d='docs api'; cd $d
for d in docs ..; do cd $d; cd ..; done
pushd docs
popd
dirs
chroot docs
exec ls
cd docs && exec cat
cd docs 2> pwned
cd docs > pwned
! cd .. && ls
cd nosuch || cd ..
cd nosuch || cat /etc/passwd
cd nosuch; cat /etc/passwd
CDPATH=.. cd outside
PWD=/etc; ls
OLDPWD=/etc; cd -
""".strip().splitlines()

_REDIRECTS = r"""
cat 0< /etc/passwd
cat < "/etc/passwd"
cat < '/etc/passwd'
cat < /etc/pass*
cat < {/etc/passwd,README.md}
cat < ../outside/secret.txt
cat < ../../../etc/passwd
cat < ../../..
cat < docs/../../outside/secret.txt
cat < ./../outside/secret.txt
cat < link
cat < passwd
cat < updir/secret.txt
cat < rootlink/etc/passwd
cat < rootlink/proc/self/environ
cat < rootlink/proc/1/environ
cat < loop/../../outside/secret.txt
cat < /proc/self/environ
cat < /proc/self/fd/0
cat < /dev/stdin
cat < /dev/fd/3
cat < /dev/tcp/127.0.0.1/22
cat < /dev/udp/127.0.0.1/53
cat < /dev/zero
cat < /dev/random
cat < /dev/tty
cat < ~/x
cat < $HOME/x
cat < $(ls)
cat < `ls`
cat < <(id)
cat <<'EOF'
cat <<-EOF
cat << EOF
cat <<< x
cat <<<$(id)
cat <&0
cat <&3
cat <& README.md
cat <&-
cat 0<&1
cat 3< README.md
cat 9<README.md
cat {x}<README.md
cat {x}>pwned
cat <> README.md
cat 0<> pwned
cat <
cat < ;
cat < | ls
cat < *
cat < *.md *.txt < docs/*
cat < ''
cat < README.md names.txt > pwned
cat < README.md > README.md
cat < README.md >pwned
cat < README.md | tee pwned
< README.md
< README.md > pwned
<README.md
< /etc/passwd cat
</etc/passwd cat
cat < README.md < /etc/passwd
cat < /etc/passwd < README.md
cat README.md < link
wc < link
sort < passwd
tr a b < rootlink/etc/passwd
grep root < passwd
awk 1 < link
jq -R . < passwd
head -1 < rootlink/etc/shadow
xargs cat < outside.txt
xargs -0 cat < names0
xargs rm < names.txt
f=/etc/passwd; cat < $f
f=/etc/passwd; cat < "$f"
f=link; cat < $f
f='README.md names.txt'; cat < $f
for f in passwd link; do cat < $f; done
for f in /etc/*; do cat < $f; done
cd docs && cat < ../link
cd docs && cat < ../../outside/secret.txt
ls < nosuch; cat < /etc/passwd
echo x >&3
echo x 1>&3
echo x >&-
echo x 2>&-
echo x >& /dev/null
echo x &>>/dev/null
echo x >>/dev/null
echo x >|/dev/null
echo x > /dev/null/../../pwned
echo x > ./dev/null
echo x > /dev/nul*
echo x > '/dev/null '
echo x >/dev/null>pwned
echo x 2>/dev/null>pwned
""".strip().splitlines()

_BRACES = r"""
echo {1..9999999}
echo {1..99999999999999999999}
echo {1..10001}
echo {-9999999..9999999}
echo {1..9999999..2}
echo {0..999999999..1}
echo {{1..9999999},a}
echo {a,{b,{1..9999999}}}
echo {1..1000}{1..1000}
echo {1..100}{1..100}{1..100}
echo {1..10}{1..10}{1..10}{1..10}{1..10}
echo {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}
echo {{a,b},{c,d}}{{a,b},{c,d}}{{a,b},{c,d}}{{a,b},{c,d}}{{a,b},{c,d}}{{a,b},{c,d}}{{a,b},{c,d}}
echo {{{{{{{{{{{{a,b},c},d},e},f},g},h},i},j},k},l},m}
echo {{1..5000},{1..5000},{1..5000}}
cat {README.md,/etc/passwd}
cat /{etc,x}/passwd
cat {..,.}/outside/secret.txt
cat {.,}./outside/secret.txt
cat .{.,}/outside/secret.txt
cat {{.,}.,x}/outside/secret.txt
cat {/etc/{passwd,shadow},README.md}
cat {-,/etc/passwd}
sort {-o,pwned} README.md
sort -{o,u} pwned README.md
sort README.md {-o,-u}{pwned,}
find . -{delete,print}
find . {-name,x,-delete}
find . -exec {rm,cat} {} +
ls | xargs {rm,-f}
ls | xargs -I{} {rm,{}}
{rm,-f,README.md}
{/bin/ls,-l}
{./script.sh,x}
{,}id
{,id}
{cat,/etc/passwd}
{cat,../outside/secret.txt}
{l,i}d
r{m,x} README.md
grep -{f,e} names.txt README.md
grep -{r,n}f names.txt README.md
sed -{i,n} p README.md
awk -{f,v} names.txt README.md
jq -{n,f} names.txt
test -{e,f} /etc/passwd
[ -{e,f} /etc/passwd ]
cat < {README.md,names.txt}
cat < {/etc/passwd,}
echo {a,b
echo a,b}
echo {a,b}}
echo {{a,b}
echo }a,b{
echo {1..
echo {1..2
echo {a..1}
echo {1..a}
echo {a..b..c}
echo {1..2..3..4}
echo {$(id),a}
echo {`id`,a}
echo {a,$(id)}
{ls,} ; { id; }
{ ls,id; }
for i in {1..9999999}; do :; done
for i in {1..40}{1..40}; do :; done
x={1..3}; $x
x=a; cat {$x,/etc/passwd}
x=/etc; cat {$x,a}/passwd
""".strip().splitlines()

_LINES = r"""
ls #«\n»id
# ls«\n»id
#«\n»id«\n»#
ls # a \«\n»id
ls \«\n»; id
ls \«\n»&& id
ls; \«\n»id
i\«\n»d
r\«\n»m README.md
"i\«\n»d"
cat /e\«\n»tc/passwd
cat .\«\n»./outside/secret.txt
cat "/e\«\n»tc/passwd"
echo x \«\n»> pwned
echo x >\«\n» pwned
echo $\«\n»(id)
echo $\«\n»{PATH}
echo "$\«\n»(id)"
echo `\«\n»id`
ls |«\n»id
ls &&«\n»id
ls ||«\n»id
ls;«\n»id
ls&«\n»id
ls «\n»| id
ls «\n»&& id
ls «\n»; id
;«\n»ls
|«\n»ls
ls«\n»;
\«\n»
#
   # id
«\n»
ls '«\n»id
ls "«\n»id
cat '/etc/«\n»passwd'
sort -o\«\n»pwned README.md
sort \«\n»-o pwned README.md
find . -de\«\n»lete
find .«\n»-delete
find . \«\n»-delete
! ! id
! rm README.md
!
! !
! | ls
!id
ls | ! id
! ls | id
! cat /etc/passwd
! (id)
! { id; }
$'id'
$'\x69\x64'
$'\151\144'
$'\u0069d'
$'/bin/\x6cs'
$'r\x6d' README.md
i$'d'
cat $'/etc/passwd'
cat $'\x2fetc\x2fpasswd'
cat $'\057etc/passwd'
cat $'\u002fetc/passwd'
cat $'\U0000002fetc/passwd'
cat $'..\x2foutside/secret.txt'
cat $'\56\56/outside/secret.txt'
cat .$'.'/outside/secret.txt
sort $'-o' pwned README.md
sort $'\x2do' pwned README.md
sort -$'o'pwned README.md
find . $'-delete'
find . -d$'\x65'lete
find . -exec $'rm' {} \;
ls | xargs $'rm'
echo x $'>' pwned; id
echo $'\0'
echo $'\x00'
echo $'\u0000'
echo $'\xzz'
echo $'\q'
echo $'\cA'
echo $'\400'
echo $'\ud800'
echo $'\U00110000'
echo $'a
echo $'\
echo $'\''; id
echo $'\\'; id
echo '$'; id
echo $"a"
echo ['']*
ls [""a]*
ls [!'']
echo "$'a'"; id
ls\ ; id
ls\t;id
ls;\id
""".strip().splitlines()

_CONTAINED = r"""
for f in *; do cat "$f"; done
for f in *; do cat -- $f; done
for f in * .*; do echo "$f"; done
for f in link passwd updir/secret.txt rootlink/etc/passwd; do cat "$f"; done
for f in rootlink/*; do cat "$f"; done
for f in rootlink/etc/*; do echo "$f"; done
for f in up*/*; do cat "$f"; done
for f in *; do echo "$f"; done | xargs -d '\n' wc -c
for f in a; do cat link; done 2>&1 | grep OUTSIDE
for i in {1..300}; do x=$i; done; echo $x
for i in {1..31}; do for j in {1..31}; do x=$i$j; done; done; echo $x
for i in {1..100}; do echo {1..999}; done
for i in {1..100}; do cat docs/numbers.txt; done | sort | uniq -c | head
for i in {1..50}; do grep -rn foo . ; done | wc -l
for i in 1; do for j in 1; do for k in 1; do echo x | cat | cat; done | cat; done | cat; done | cat
for i in a b c; do break; done; echo $i
for f in nosuch*; do cat "$f"; done
for f in '$(id)' '`id`' '; id' '| id' '> pwned'; do echo $f; done
for f in 'a b' c; do echo $f; done
for x in x; do x=y$x; echo $x; done
for f in a; do cd docs; done; cat ../link
for f in a; do cd nosuch; done
for f in a; do cd docs; pwd; done | cat; pwd
for x in -delete; do echo "$x"; done
for done in a; do echo $done; done
for for in a; do echo $for; done
x='$(id)'; echo $x
x='`id`'; echo "$x"
x='; id'; echo $x
x='| id'; echo $x
x='> pwned'; echo $x
x='&& id'; echo a $x
x='$y'; y=id; echo $x
x='*'; echo $x
x='*'; echo "$x"
x='{a,b}'; echo $x
x='~'; echo $x
x='# id'; echo $x
x='"a b"'; echo $x
x=link; cat $x
x=link; cat ./$x
x=rootlink; cat $x/etc/passwd
x=rootlink; ls $x/etc
x='link passwd'; cat $x
x=-delete; echo $x
x=./-delete; cat "$x"
x=a; x=$x$x; x=$x$x; echo ${#x}
x=/etc/passwd; echo $x
x=/etc/passwd; echo ${x##*/}
x=aaaaaaaaaaaaaaaaaaaaaaaaaaaa; echo ${x%%*a*a*a*a*a*a*a*b}
a=1 b=$a c=$b; echo $a$b$c
x=; echo "$x"
x=1; echo $?
echo $?$?
cat nosuch; echo $?
cd docs; cat ../passwd ../updir/secret.txt
cd docs && cat < guide.md
cd docs && cd .. && ls
cd docs && cd 'sub dir' && cat ../../README.md
cd nosuch && cat link
cd README.md
cd loop
cd ./docs/./
cd docs/
cat < README.md
cat < README.md < names.txt
cat < nosuch
cat < docs
cat < empty.txt
cat < ./-delete
cat < *.md
cat < /dev/null
cat < loop
wc -c < README.md 2>/dev/null
xargs cat < names.txt
xargs -I{} cat ./{} < names.txt
grep OUTSIDE < names0
cat - README.md < names.txt
sort < README.md | uniq
ls | cat < README.md
echo {1..9999}
echo {a,b{c,d{e,f{g,h{i,j}}}}}
echo {1..100}{1..100}
echo {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}
cat {link,passwd}
cat {updir,rootlink/etc}/{secret.txt,passwd}
echo {/etc/passwd,../x}
echo {,,,}
echo {}{}{}
ls # $(id)
ls # `id` > pwned
ls # '
echo '# id'
echo a#id
ls«\n»ls
ls |«\n»cat
ls \«\n»-la
echo 'a«\n»id'
echo "a«\n»id"
echo a\«\n»b
echo 'a\«\n»id'
# id«\n»ls
! cat link
! ls nosuch
! ! ls
echo $'id\nid'
echo $'$(id)'
echo $'\x60id\x60'
echo $'\e]0;x\a'
cat $'li\x6ek'
echo $'\xff\xfe'
""".strip().splitlines()


def _fill(lines: Sequence[str]) -> list[str]:
    return [line.replace("«\\n»", "\n") for line in lines]


REFUSED: tuple[str, ...] = tuple(_fill([*_LOOPS, *_VARIABLES, *_FOLDERS, *_REDIRECTS, *_BRACES, *_LINES]))
CONTAINED: tuple[str, ...] = tuple(_fill(_CONTAINED))
